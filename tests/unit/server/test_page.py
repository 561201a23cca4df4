"""What browsers get where the page is not built yet; and its pure parts, by vitest, whose report a failure shows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dilaton.server.page import page
from tests.conftest import ROOT
from tests.unit.server.serving import served

WEB = ROOT / "web"


@pytest.mark.skipif(
    not (WEB / "node_modules" / ".bin" / "vitest").exists(),
    reason="the page's tools are not installed: ./dev setup does it where there is npm",
)
def test_the_pure_parts_of_the_page_do_what_their_tests_say() -> None:
    ran = subprocess.run(
        ["npm", "--prefix", str(WEB), "run", "--silent", "test"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_link_that_is_followed_before_the_page_is_built_shows_it_once_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "page")
    monkeypatch.setattr(page, "_part", page._part.__wrapped__)  # which remembers pages of other tests
    with served(tmp_path / "server") as server:
        browser = server.stranger()
        waits = browser.ask("GET", "/login?once=secret")
        assert waits.status == 503 and b'http-equiv="refresh"' in waits.body and b"secret" not in waits.body
        (tmp_path / "page").mkdir()
        (tmp_path / "page" / "index.html").write_text("the page")
        assert browser.ask("GET", "/login?once=secret").body == b"the page"
