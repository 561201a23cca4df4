"""A YAML text as plain data, and where each part of it stands.

Scalars stay the text that was written (`0.1` is not yet a number, `no` not yet a truth value): what they mean is for
the field that they are in, which can then read them exactly. Anchors, aliases and `<<` merges work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from dilaton.lab.errors import LabError, Path, Problem, field_name
from dilaton.lab.text.yaml_nodes import LimitError, compose

MAIN_FIELDS = ("mean", "random", "probability", "confirm")
"""What a value alone stands for: `delay: 20ms` is `delay: {mean: 20ms}`, and the mistake is told of `delay`."""

_STANDARD_TAG = "tag:yaml.org,2002:"


@dataclass
class Document:
    """A YAML document.

    Attributes:
        file: Name of the file, for problems.
        data: Dictionaries, lists and text.
        empty: Fields and list items with nothing written. (A node may be empty: it is None in `data`.)
        problems: What is wrong with it as YAML.
        key_positions: Line and column of each field's name.
        value_positions: Line and column of each value.
        settings: Steps to the parts that were set from outside, which stand nowhere in the file.
    """

    file: str
    data: Any = None
    empty: set[Path] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    key_positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    value_positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    settings: tuple[tuple[str, ...], ...] = ()

    def problem(self, path: Path, message: str, at_key: bool = False) -> Problem:
        """A problem at a path: at its value or its key, or at the closest part around it that is written."""
        steps = tuple(str(step) for step in path)
        for setting in self.settings:
            # A part that stands nowhere in the file may be there because something in it was set.
            is_made = path not in self.value_positions and setting[: len(steps)] == steps
            if is_made or steps[: len(setting)] == setting:
                within = steps[len(setting) :]
                is_whole = steps == setting or (bool(within) and within[0] in MAIN_FIELDS)
                return Problem(f"--set {'.'.join(setting)}", 0, 0, "" if is_whole else field_name(path), message)
        if path[-1:] and path[-1] in MAIN_FIELDS and path[:-1] in self.value_positions:
            path = path if path in self.value_positions else path[:-1]
        written = path
        while written and written not in self.value_positions:
            written = written[:-1]
        positions = (
            self.key_positions if at_key and written == path and path in self.key_positions else self.value_positions
        )
        line, column = positions.get(written, (1, 1))
        return Problem(self.file, line, column, field_name(path), message)


def read_document(text: str, file: str) -> Document:
    """Reads YAML text.

    Raises:
        LabError: it is not YAML, is empty, larger than any lab, or holds several documents.
    """
    try:
        root = compose(text)
    except LimitError as error:
        raise LabError([Problem(file, error.line, error.column, "", f"not a lab: {error.reason}")]) from error
    except MarkedYAMLError as error:
        raise LabError([_syntax_problem(error, file)]) from error
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"not YAML: the character {_code(error.character)} is not allowed in a text file"
        raise LabError([Problem(file, line, column, "", message)]) from error
    except YAMLError as error:
        raise LabError([Problem(file, 1, 1, "", f"not YAML: {error}")]) from error
    if root is None:
        raise LabError([Problem(file, 1, 1, "", "the file is empty; a lab needs at least a name and nodes")])
    document = Document(file)
    document.data = _Builder(document).build(root, ())
    return document


class _Builder:
    """Turns YAML nodes into plain data, noting positions and problems in the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._open: set[int] = set()

    def build(self, node: Node, path: Path) -> Any:
        document = self._document
        document.value_positions[path] = _position(node)
        if id(node) in self._open:
            raise LabError([document.problem(path, "this alias contains itself")])
        if node.tag and not str(node.tag).startswith(_STANDARD_TAG):
            document.problems.append(document.problem(path, f"{node.tag}: tags have no meaning in a lab; remove it"))
        if isinstance(node, ScalarNode):
            return self._text(node, path)
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return self._build_list(node, path)
            assert isinstance(node, MappingNode)
            return self._build_dict(node, path)
        finally:
            self._open.remove(id(node))

    def _build_list(self, node: SequenceNode, path: Path) -> list[Any]:
        items = []
        for number, item in enumerate(node.value):
            if _is_empty(item):
                self._document.value_positions[(*path, number)] = _position(item)
                self._report_empty((*path, number))
            items.append(self.build(item, (*path, number)))
        return items

    def _build_dict(self, node: MappingNode, path: Path) -> dict[str, Any]:
        document = self._document
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._text(key_node, path) if isinstance(key_node, ScalarNode) else None
            if key is None:
                line, column = _position(key_node)
                message = "a field name is text, not a list or mapping"
                document.problems.append(Problem(document.file, line, column, field_name(path), message))
                continue
            if key == "<<":
                continue
            here: Path = (*path, key)
            if key in result or here in document.empty:
                line, column = _position(key_node)
                message = f"written twice; the first is in line {document.key_positions[here][0]}"
                document.problems.append(Problem(document.file, line, column, field_name(here), message))
                continue
            document.key_positions[here] = _position(key_node)
            is_node = path == ("nodes",)
            if not (_is_empty(value_node) or (is_node and _is_null(value_node))):
                result[key] = self.build(value_node, here)
                continue
            document.value_positions[here] = _position(key_node)
            if is_node:
                result[key] = None
            else:
                self._report_empty(here)
        return self._merged(node, path, result)

    def _merged(self, node: MappingNode, path: Path, result: dict[str, Any]) -> dict[str, Any]:
        """Adds what `<<` brings in; what is written in the mapping itself wins."""
        for key_node, value_node in node.value:
            if not (isinstance(key_node, ScalarNode) and key_node.value == "<<"):
                continue
            sources = value_node.value if isinstance(value_node, SequenceNode) else [value_node]
            for source in sources:
                if not isinstance(source, MappingNode):
                    problem = self._document.problem((*path, "<<"), "merges a mapping, such as <<: *defaults")
                    self._document.problems.append(problem)
                    continue
                here = self._document.value_positions[path]
                for key, value in self.build(source, path).items():
                    result.setdefault(key, value)
                self._document.value_positions[path] = here
        return result

    def _text(self, node: ScalarNode, path: Path) -> str:
        """The text of a scalar; half a surrogate pair, which an escape can write, is no character."""
        text = str(node.value)
        if text.isascii():
            return text
        whole = text.encode(errors="replace").decode()
        if whole != text:
            line, column = _position(node)
            message = "an escape writes half a character; write the character itself"
            self._document.problems.append(Problem(self._document.file, line, column, field_name(path), message))
        return whole

    def _report_empty(self, path: Path) -> None:
        message = "nothing is written here; write a value or remove the line"
        self._document.empty.add(path)
        self._document.problems.append(self._document.problem(path, message))


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value == "" and node.style is None


def _is_null(node: Node) -> bool:
    """Whether it is what programs write for nothing."""
    return isinstance(node, ScalarNode) and node.value in ("~", "null") and node.style is None


def _position(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _code(character: Any) -> str:
    return f"U+{character if isinstance(character, int) else ord(character):04X}"


_NOT_CLOSED = "a bracket is not closed"
_HINTS = {
    "mapping values are not allowed here": "a text that contains ': ' must be in quotes, and a field needs a space "
    "after its colon",
    "expected ',' or '}', but got ':'": "a text that contains ': ' must be in quotes",
    "expected ',' or ']', but got ':'": _NOT_CLOSED,
    "expected ',' or ']', but got '<stream end>'": _NOT_CLOSED,
    "expected ',' or '}', but got '<stream end>'": _NOT_CLOSED,
    "expected <block end>, but found ']'": "a bracket closes nothing",
    "expected <block end>, but found '}'": "a bracket closes nothing",
    "expected <block end>, but found": "what belongs together begins in the same column",
    "sequence entries are not allowed here": "a list begins on a line of its own",
    "found unexpected end of stream": "a quote is not closed",
    "found unknown escape character": "put the text in single quotes",
    "found undefined alias": "a text that begins with * must be in quotes",
    "found character '\\t' that cannot start any token": "indent with spaces, not tabs",
    "found character": "put the text in quotes",
    "expected a single document in the stream": "a file holds one lab",
}
"""What usually causes an error of the YAML reader, by how its words begin; the first that fits."""


def _syntax_problem(error: MarkedYAMLError, file: str) -> Problem:
    reasons = [" ".join(str(reason).split()) for reason in (error.context, error.problem) if reason]
    hint = next((hint for start, hint in _HINTS.items() if any(reason.startswith(start) for reason in reasons)), "")
    mark = error.problem_mark or error.context_mark
    if hint.endswith("not closed"):
        # There is nothing to see where the reader noticed.
        mark = error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return Problem(file, line, column, "", f"not YAML: {', '.join(reasons)}{'; ' if hint else ''}{hint}")
