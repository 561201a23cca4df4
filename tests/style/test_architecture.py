"""The folders are the architecture: imports point one way, and what computes reads no clock and draws no chance."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.style.tree import PACKAGE, files_in, name, none_of, parsed

LINES_MAX = 500
"""A longer file wants a second room."""

FILES_MAX = 15
"""A folder with more files wants folders by what belongs together."""

MAY_IMPORT: dict[str, set[str]] = {
    "images": set(),
    "lab": {"images"},
    "templates": {"images", "lab"},
    "schema": {"lab"},
    "plan": {"lab"},
    "host": {"plan"},
    "cluster": {"plan", "host"},
    "measure": {"lab", "plan"},
    "run": {"lab", "schema", "plan", "host", "cluster", "measure"},
    "report": {"lab", "plan", "measure", "run"},
    "service": {"images", "templates", "lab", "plan", "host", "measure", "run", "report"},
    "server": {"images", "templates", "lab", "schema", "plan", "host", "run", "measure", "report", "service"},
    "remote": {"run"},
    "cli": {"images", "templates", "lab", "schema", "plan", "host", "run", "measure", "report", "service", "remote"},
}
"""Which part of the package may import which others; the parts are in the order of the data's way."""

MAY_READ_CLOCKS = {"host", "cluster", "run", "service", "server", "remote", "cli"}

CLOCK_READS = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "clock_gettime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "os": {"urandom", "getrandom"},
    "uuid": {"uuid1", "uuid4"},
}
"""Attributes that read a clock or chance, by the name before the dot."""

RUST_CLOCK_READ = re.compile(r"\b(std::time|SystemTime|Instant::now|clock_gettime|getrandom|rand::)")


def part_of(path: Path) -> str:
    """The part of the package that a file belongs to; empty for files at its top."""
    first, *rest = path.relative_to(PACKAGE).parts
    return first if rest else ""


def imported_parts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The parts of the package that a file imports, with the lines, imports within functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "dilaton":
            modules = [f"dilaton.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            package, _, rest = module.partition(".")
            if package == "dilaton" and (part := rest.partition(".")[0]) in MAY_IMPORT:
                yield node.lineno, part


def clock_reads(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where a file reads a clock or chance. A generator with a given seed (`random.Random`) is neither."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, attribute = node.value.id, node.attr
            if attribute in CLOCK_READS.get(owner, ()) or (owner == "random" and attribute != "Random"):
                yield node.lineno, f"{owner}.{attribute}"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                forbidden = alias.name in CLOCK_READS.get(node.module or "", ())
                if forbidden or (node.module in {"random", "secrets"} and alias.name != "Random"):
                    yield node.lineno, f"{node.module}.{alias.name}"


def package_files() -> list[Path]:
    """All Python files of the package."""
    return files_in("python/dilaton", suffix=".py")


def test_no_file_is_longer_than_500_lines() -> None:
    sources = [
        path for path in files_in("crates", "python", "tests", "scripts") if path.suffix in {".rs", ".py", ".sh"}
    ]
    lengths = {name(path): len(path.read_text().splitlines()) for path in sources}
    none_of(f"{file}: {length} lines" for file, length in lengths.items() if length > LINES_MAX)


def test_no_folder_of_the_sources_and_tests_has_more_than_15_files() -> None:
    sources = files_in("crates", "python", "tests")
    counts = Counter(path.parent for path in sources if "fixtures" not in path.parts)
    none_of(f"{name(folder)}: {count} files" for folder, count in counts.items() if count > FILES_MAX)


def test_every_folder_of_the_package_has_its_place_in_the_order_of_imports() -> None:
    assert {part_of(path) for path in package_files()} - {""} <= set(MAY_IMPORT)


def test_imports_point_one_way() -> None:
    none_of(
        f"{name(path)}:{line}: {part} may not import {imported}"
        for path in package_files()
        if (part := part_of(path))
        for line, imported in imported_parts(parsed(path))
        if imported != part and imported not in MAY_IMPORT[part]
    )


def test_the_order_of_imports_has_no_cycle() -> None:
    parts = [
        "images",
        "lab",
        "templates",
        "schema",
        "plan",
        "host",
        "cluster",
        "measure",
        "run",
        "report",
        "service",
        "server",
        "remote",
        "cli",
    ]
    order = {part: place for place, part in enumerate(parts)}
    assert all(order[imported] < order[part] for part, imports in MAY_IMPORT.items() for imported in imports)


def test_what_computes_reads_no_clock_and_no_chance() -> None:
    none_of(
        f"{name(path)}:{line}: {what}: take it as an argument"
        for path in package_files()
        if part_of(path) not in MAY_READ_CLOCKS
        for line, what in clock_reads(parsed(path))
    )


def test_crates_that_decide_are_pure() -> None:
    none_of(
        f"{name(path)}:{number}: {line.strip()}"
        for path in files_in("crates/virtual-time/src", "crates/interrupts/src", suffix=".rs")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if RUST_CLOCK_READ.search(line)
    )
