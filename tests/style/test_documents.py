"""The documents are there, and what they point at is there too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.style.tree import ROOT, files, name, none_of

DOCUMENTS = ["README", "ARCHITECTURE", "STYLE", "SPECIFICATION", "CONTRIBUTING", "CHANGELOG"]

LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CLAIM = re.compile(r"^\| [^|]+ \| ([^|]*) \|$", re.MULTILINE)
SHOWN_BY = re.compile(r"`(tests/[\w/]+\.py|crates/[\w/-]+\.rs)::(\w+)`")
INLINE_CODE = re.compile(r"`[^`\n]*`")


def relative_links(text: str) -> Iterator[str]:
    """The targets of links to other files, without the heading in them; what is in code is no link."""
    prose = INLINE_CODE.sub("", FENCED.sub("", text))
    for target in LINK.findall(prose):
        path = target.partition("#")[0]
        if path and not re.match(r"[a-z]+:", path):
            yield path


def examples() -> list[Path]:
    """The directories of the examples."""
    return sorted(path for path in (ROOT / "examples").glob("*") if path.is_dir())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_document_is_there(document: str) -> None:
    assert (ROOT / f"{document}.md").is_file()


def test_the_license_is_apache_2() -> None:
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()


def test_links_lead_somewhere() -> None:
    none_of(
        f"{name(document)}: {link}"
        for document in files()
        if document.suffix == ".md"
        for link in relative_links(document.read_text())
        if not (document.parent / link).exists()
    )


def test_links_are_found_in_prose_alone() -> None:
    text = "[a](b.md#top) `[no](c.md)` [far](https://x.org) [here](#top)\n```\n[no](d.md)\n```\n[e](<f.md>)"
    assert list(relative_links(text)) == ["b.md", "f.md"]


def test_every_claim_of_safety_names_a_test_that_is_there() -> None:
    tables = (ROOT / "docs/security.md").read_text().split("| claim | shown by |\n| --- | --- |\n")[1:]
    claims = [shown for table in tables for shown in CLAIM.findall(table.partition("\n\n")[0] + "\n")]
    assert len(claims) > 10
    none_of(f"no test: {shown}" for shown in claims if not SHOWN_BY.search(shown))
    none_of(
        f"{path}::{test}"
        for shown in claims
        for path, test in SHOWN_BY.findall(shown)
        if not (ROOT / path).is_file() or not re.search(rf"\b(def|fn) {test}\(", (ROOT / path).read_text())
    )


def test_there_are_examples() -> None:
    assert examples()


@pytest.mark.parametrize("example", examples(), ids=lambda path: path.name)
@pytest.mark.parametrize("file", ["lab.yaml", "README.md"])
def test_the_example_has(example: Path, file: str) -> None:
    assert (example / file).is_file()
