"""What every source file owes its reader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import pytest

from tests.style.tree import files, files_in, name, none_of, parsed

UNSAFE = re.compile(r"\bunsafe\s*(\{|impl\b)")

# Places on one machine, and registries, which belong to the configuration of whoever builds. Written with classes of
# one character, so that these patterns do not find themselves.
NOT_FOR_SOURCES = re.compile(
    r"(?<![\w.}])/(work|root)[/]|(static|index)[.]crates[.]io|pypi[.]org|pythonhosted[.]org|deb[.]debian[.]org|npmjs[.]org"
)


def public_without_docstring(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[int, str]]:
    """Public functions, classes and methods that say nothing about themselves."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None:
            yield node.lineno, prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from public_without_docstring(node.body, f"{node.name}.")


def undocumented_unsafe(lines: Sequence[str]) -> Iterator[int]:
    """Numbers of the lines with an unsafe block or implementation whose statement no SAFETY comment precedes."""
    for index, line in enumerate(lines):
        code = line.partition("//")[0]
        if UNSAFE.search(code) and not _is_explained(lines, index):
            yield index + 1


def _is_explained(lines: Sequence[str], index: int) -> bool:
    """Whether a SAFETY comment stands before the statement that line `index` belongs to."""
    if "SAFETY:" in lines[index]:
        return True
    for line in reversed(lines[:index]):
        text = line.strip()
        if text.startswith("//"):
            if "SAFETY:" in text:
                return True
        elif not text or text.endswith((";", "{", "}")):
            return False
    return False


def test_everything_public_has_a_docstring() -> None:
    none_of(
        f"{name(path)}:{line}: {what}"
        for path in files_in("python/dilaton", suffix=".py")
        for line, what in public_without_docstring(parsed(path).body)
    )


def test_every_module_says_what_it_is() -> None:
    none_of(
        name(path)
        for path in files_in("python/dilaton", "tests", suffix=".py")
        if path.stat().st_size and ast.get_docstring(parsed(path)) is None
    )


def test_every_unsafe_block_says_why_it_is_sound() -> None:
    none_of(
        f"{name(path)}:{line}"
        for path in files_in("crates", suffix=".rs")
        for line in undocumented_unsafe(path.read_text().splitlines())
    )


@pytest.mark.parametrize(
    ("source", "offences"),
    [
        ("// SAFETY: sound\nunsafe { f() };", []),
        ("// SAFETY: sound,\n// for two reasons\nlet x =\n    unsafe { f() };", []),
        ("unsafe { f() }; // SAFETY: sound", []),
        ("// fast\nunsafe { f() };", [2]),
        ("// SAFETY: sound\nf();\nunsafe { g() };", [3]),
        ("unsafe impl Send for T {}", [1]),
        ("// what unsafe { means", []),
    ],
)
def test_the_reader_of_unsafe_blocks_knows_them(source: str, offences: list[int]) -> None:
    assert list(undocumented_unsafe(source.splitlines())) == offences


def test_no_source_names_a_registry_or_a_place_on_one_machine() -> None:
    none_of(
        f"{name(path)}:{number}: {found[0]}"
        for path in files()
        # Written by cargo, which names its own index there.
        if path.name != "Cargo.lock" and path.suffix not in {".png", ".svg", ".gif", ".webp"}
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (found := NOT_FOR_SOURCES.search(line))
    )
