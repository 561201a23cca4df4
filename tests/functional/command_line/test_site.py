"""The documents as a site, which `./dev docs` makes."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.conftest import ROOT

PAGE = re.compile(r"- ([\w/.-]+\.md)$", re.MULTILINE)


def test_every_document_has_its_place_in_the_site() -> None:
    named = PAGE.findall((ROOT / "mkdocs.yml").read_text())
    assert len(named) == len(set(named))
    assert {str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")} <= set(named)


def test_the_site_is_made_and_a_link_that_leads_nowhere_is_an_error() -> None:
    made = subprocess.run([sys.executable, "scripts/make_site.py"], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "twenty minutes" in (ROOT / "target/site/docs/tutorial/index.html").read_text()
    page = ROOT / "target/site-source/docs/time.md"
    page.write_text(page.read_text() + "\n[here](#nowhere)\n")
    again = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"], cwd=ROOT, capture_output=True, text=True
    )
    assert again.returncode != 0
    assert "docs/time.md" in again.stdout + again.stderr
