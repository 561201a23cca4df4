"""What implements the port stays behind it: runs, and whatever shows them, do not know what a guest is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.style.tree import PACKAGE, files_in, name, none_of, parsed

HERE = "dilaton.host.here"

MAY_ASK_THIS_MACHINE = {
    "run/machines.py": {"machine"},
    "cluster/agent.py": {"machine", "memory"},
    "cluster/engines/having.py": {"doctor", "uml"},
    "cluster/files/kernel.py": {"uml"},
    "cluster/machine.py": {"jail"},
    "run/here.py": {"doctor"},
    "cli/machine/": {"doctor", "uml"},
    "cli/": {"doctor"},
    "service/": {"doctor"},
    "server/runs/user_ids.py": {"uml"},
}
"""Who beside `host/` may import which parts of `host/here/`, the first that fits: one file chooses the machine, and some
tell the user, or the record, what the machine has and lacks, one gives it a kernel, and one lets others use its own. Nobody may import guests or the
memory shared with them."""


def parts_imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The parts of `host/here/` that a file imports, with the lines; `here` is all of it."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                imported = [f"{module}.{alias.name}" for alias in names]
            case ast.Import(names=names):
                imported = [alias.name for alias in names]
            case _:
                continue
        for module in imported:
            if f"{module}.".startswith(f"{HERE}."):
                yield node.lineno, module.removeprefix(HERE).removeprefix(".").partition(".")[0] or "here"


def allowed(path: Path) -> set[str]:
    """The parts of `host/here/` that a file may import."""
    place = path.relative_to(PACKAGE).as_posix()
    return next((parts for prefix, parts in MAY_ASK_THIS_MACHINE.items() if place.startswith(prefix)), set())


def beside_host() -> list[Path]:
    """The files of the package that do not belong to `host/`."""
    return [path for path in files_in("python/dilaton", suffix=".py") if PACKAGE / "host" not in path.parents]


def test_what_implements_the_port_is_imported_where_the_machine_is_chosen_and_nowhere_else() -> None:
    none_of(
        f"{name(path)}:{line}: {part} of {HERE}: ask for it through dilaton.host.port"
        for path in beside_host()
        for line, part in parts_imported(parsed(path))
        if part not in allowed(path)
    )


def test_the_port_and_its_values_do_not_know_what_implements_them() -> None:
    none_of(
        f"{name(path)}:{line}: {part}"
        for path in files_in("python/dilaton/host", suffix=".py")
        if PACKAGE / "host" / "here" not in path.parents
        for line, part in parts_imported(parsed(path))
    )


def test_nobody_beside_the_host_knows_of_clock_pages() -> None:
    none_of(
        f"{name(path)}:{node.lineno}"
        for path in beside_host()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Name) and node.id == "ClockPage"
    )


def test_every_way_to_import_a_part_is_seen() -> None:
    ways = f"import {HERE}.memory.wire\nfrom {HERE}.guests import guest\nfrom {HERE} import machine\n"
    ways += "from dilaton.host import here\nfrom dilaton.host import port\n"
    assert list(parts_imported(ast.parse(ways))) == [(1, "memory"), (2, "guests"), (3, "machine"), (4, "here")]
