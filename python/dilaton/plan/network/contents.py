"""The files that a lab gives its nodes, templates filled with what the plan knows.

A template sees `lab` (its `name` and `seed`), `node`, the node that it is for, and `nodes`, all of them by name. A node
has its `name`, `address` and `address6` (the first of each, without a length), `addresses` (all of them) and
`interfaces` by name, each with `name`, `address`, `address6`, `addresses` and `prefixes` (addresses with lengths).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dilaton.lab.beside.contents import LARGER, TREE_BYTES_MAX, Contents, Entry
from dilaton.lab.model import Lab
from dilaton.lab.text import units
from dilaton.plan.errors import lab_error
from dilaton.plan.model import Interface, OwnFile

NONE = ""
"""What a node's address is that has none."""

Fill = Callable[[str, str], str]
"""Fills a template for the node of that name."""


def own_files(
    lab: Lab, interfaces: Mapping[str, list[Interface]], own: Mapping[str, list[str]]
) -> dict[str, list[OwnFile]]:
    """The files of each node that the lab gives some.

    Args:
        lab: The lab.
        interfaces: Of each node.
        own: The addresses of each node that are of no interface.

    Raises:
        LabError: A template cannot be filled; or files are too large together.
    """
    fill: Fill | None = None
    found: dict[str, list[OwnFile]] = {}
    size_bytes = 0
    for name, node in lab.nodes.items():
        for place, contents in node.files.items():
            if contents.is_template and fill is None:
                fill = _filling(lab, interfaces, own)
            files = [_file(name, place, contents, entry, fill) for entry in contents.entries]
            size_bytes += sum(len(file.text or file.hex or "") for file in files)
            found.setdefault(name, []).extend(files)
            if size_bytes > TREE_BYTES_MAX:
                most = units.format_size(TREE_BYTES_MAX)
                raise lab_error(
                    f"nodes.{name}.files",
                    f"with these the files of all nodes are larger than {most}; {LARGER}",
                )
    return found


def _file(name: str, place: str, contents: Contents, entry: Entry, fill: Fill | None) -> OwnFile:
    path = f"{place}/{entry.below}" if entry.below else place
    text, digits = None, None
    if entry.contents is not None:
        try:
            text = entry.contents.decode()
        except UnicodeDecodeError:
            digits = entry.contents.hex()
    if contents.is_template and fill is not None and text is not None:
        try:
            text = fill(text, name)
        # What a template does may fail as anything else in Python may.
        except Exception as error:
            raise lab_error(f"nodes.{name}.files", f"{path}: the template cannot be filled: {error}") from error
    return OwnFile(path=path, text=text, hex=digits, mode=entry.mode, owner=contents.owner)


def _filling(lab: Lab, interfaces: Mapping[str, list[Interface]], own: Mapping[str, list[str]]) -> Fill:
    # Here, since only labs with templates need them.
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    nodes = {name: _node(name, interfaces.get(name, []), own.get(name, [])) for name in lab.nodes}
    about = {"lab": {"name": lab.name, "seed": lab.seed}, "nodes": nodes}
    return lambda text, name: environment.from_string(text).render(**about, node=nodes[name])


def _node(name: str, interfaces: Iterable[Interface], own: list[str]) -> dict[str, Any]:
    parts = {interface.name: {"name": interface.name} | _addresses(interface.addresses) for interface in interfaces}
    of_all = [*own, *(address for interface in interfaces for address in interface.addresses)]
    return {"name": name, "interfaces": parts} | _addresses(of_all)


def _addresses(prefixes: list[str]) -> dict[str, Any]:
    plain = [prefix.partition("/")[0] for prefix in prefixes]
    return {
        "address": next((address for address in plain if ":" not in address), NONE),
        "address6": next((address for address in plain if ":" in address), NONE),
        "addresses": plain,
        "prefixes": prefixes,
    }
