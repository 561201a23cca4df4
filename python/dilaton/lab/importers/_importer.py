"""What readers of files have in common: the file, what to leave out of it, and what all links are like.

A file may say things that a lab cannot honour. Each of them is an error that names it, unless `ignore:` names it too:
then it is left out, and the lab says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr

from dilaton.lab.parts.links import Direction, Link
from dilaton.lab.text import syntax, units
from dilaton.lab.topology import Topology

FILE_BYTES_MAX = 16 * 2**20
"""The longest file that is read; a graph of twenty thousand nodes with places and names has a third of it."""


class Importer(Direction):
    """The fields of every reader. Those of a link, where written, hold for all links, whatever the file says."""

    mtu: Annotated[int, BeforeValidator(lambda value: units.parse_count(value, "an MTU", 68, 65535))] = 1500
    offload: Annotated[bool, BeforeValidator(syntax.parse_flag)] = False
    ignore: Annotated[list[str], BeforeValidator(syntax.parse_names)] = Field(default_factory=list)
    """What of the file is left out."""
    _refused: dict[str, tuple[str, str]] = PrivateAttr(default_factory=dict)
    """What else would have to be, with what is said of the first of each, and what a lab can do instead."""

    def build(self, seed: int, directory: Path) -> Topology:
        """The network of the file; nothing in it is drawn by chance, so no `seed` counts.

        Raises:
            ValueError: the file cannot be read, or says what a lab cannot honour; that names all such things.
        """
        topology = self.read(directory)
        if self._refused:
            why, in_lab = next(iter(self._refused.values()))
            left_out = f"[{', '.join(map(str, [*self.ignore, *self._refused]))}]"
            ignore = f"write ignore: {left_out} or --set 'topology.ignore={left_out}'"
            raise ValueError(f"{why}; {in_lab}, or {ignore}" if in_lab else f"{why}, or {ignore}")
        return topology

    def read(self, directory: Path) -> Topology:
        """The network of the file, without what is refused.

        Raises:
            ValueError: the file cannot be read.
        """
        raise NotImplementedError

    def refuse(self, what: str, place: str, fix: str = "") -> None:
        """Refuses something that the file says at a place, unless it is to be ignored."""
        why = f"{place}: {what}: a lab cannot honour this"
        self.refuse_for(what, f"{why}; {fix}" if fix else why, "" if fix else "remove it")

    def refuse_for(self, what: str, why: str, in_lab: str = "") -> None:
        """Refuses something for a reason of its own, unless it is to be ignored; a lab can do `in_lab` instead."""
        if what not in self.ignore:
            self._refused.setdefault(what, (why, in_lab))

    def left_out(self) -> list[str]:
        """What was refused, of each kind the first, as what was left out of the network that was read."""
        return [why for why, _ in self._refused.values()]

    def link_fields(self) -> Mapping[str, Any]:
        """What is written for all links."""
        return {name: getattr(self, name) for name in Link.model_fields if name in self.model_fields_set}


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        ValueError: it cannot be read, or is no text.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(FILE_BYTES_MAX + 1)
        if len(raw) > FILE_BYTES_MAX:
            raise ValueError(f"{path}: larger than {FILE_BYTES_MAX} bytes")
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text") from error


def read_yaml(path: Path) -> dict[str, Any]:
    """The contents of a YAML file that holds a mapping; what cannot be a mapping's text is refused.

    Raises:
        ValueError: it cannot be read or is no such file.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    from dilaton.lab.text.yaml_nodes import LimitError, compose

    typed = YAML(typ="safe", pure=True)
    try:
        root = compose(read_text(path), typed.resolver.resolve)
        data = None if root is None else typed.constructor.construct_document(root)
    except LimitError as error:
        raise ValueError(f"{path}:{error}") from error
    except YAMLError as error:
        raise ValueError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    return mapping(data, str(path))


def mapping(value: object, place: str) -> dict[str, Any]:
    """A mapping, or nothing as an empty one.

    Raises:
        ValueError: it is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{place}: must be a mapping, not {units.shown(value)}")
    return value


def host_name(text: object, place: str) -> str:
    """A name of the file as the name of a node.

    Raises:
        ValueError: it cannot be one.
    """
    try:
        return syntax.parse_node_name(str(text))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
