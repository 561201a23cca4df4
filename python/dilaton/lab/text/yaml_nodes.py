"""A YAML text as nodes, within limits that hold while it is read.

**Problem.** A text of a few kilobytes can be the beginning of gigabytes: mappings within mappings without end, or
aliases of aliases. A reader that first makes everything and then looks finds out when time and memory are gone.

**Rule.** What can be seen without reading, lines and characters, is looked at first. The rest is counted while the
reader's events come in, which it makes as they are asked for: depth, values, and what aliases grow to, each alias
counting for all that it stands for. So a text that is refused has cost no more than one that is just within the limits.

Nodes are composed here and not by ruamel.yaml's composer, which calls itself for each level, and which finds out for
each scalar whether it is a number; that is only wanted where `resolve` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import ComposerError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.parser import Parser
from ruamel.yaml.scanner import Scanner
from ruamel.yaml.tag import Tag

CHARACTERS_MAX = 2**20
LINES_MAX = 100_000
VALUES_MAX = 50_000
"""Mappings, lists and scalars, names of fields too. A lab of three thousand nodes and as many links has about 39,000;
of what may be read, such a lab takes the longest: two seconds of CPU are to be enough."""
DEPTH_MAX = 50
GROWN_CHARACTERS_MAX = 4 * CHARACTERS_MAX
"""The most characters of all scalars, with each alias counted as often as it is there."""

UNRESOLVED = Tag(suffix="tag:yaml.org,2002:str")
"""The tag of nodes whose tag nobody wants to know."""

Resolve = Callable[[type[Node], Any, Any], Any]


class LimitError(Exception):
    """A text that is larger than is read.

    Attributes:
        line: Where that shows, from 1.
        column: Likewise.
        reason: What there is too much of, and how much may be.
    """

    def __init__(self, line: int, column: int, reason: str) -> None:
        super().__init__(f"{line}:{column}: {reason}")
        self.line = line
        self.column = column
        self.reason = reason


def compose(text: str, resolve: Resolve | None = None) -> Node | None:
    """The root node of a YAML text; None where it has none.

    Args:
        text: The YAML.
        resolve: Gives what has no tag its own, as a `Resolver`'s method does; None: it has none.

    Raises:
        LimitError: it is larger than what is read.
        YAMLError: it is no YAML, or has several documents.
    """
    if len(text) > CHARACTERS_MAX:
        raise LimitError(1, 1, f"{len(text)} characters; {CHARACTERS_MAX} are the most that is read")
    lines = text.count("\n")
    if lines > LINES_MAX:
        raise LimitError(LINES_MAX + 1, 1, f"{lines} lines; {LINES_MAX} are the most that is read")
    reader = YAML(typ="safe", pure=True)
    reader.Scanner, reader.Parser = _Scanner, _Parser
    return _Composer(resolve).document(reader.parse(text))


class _Scanner(Scanner):
    """ruamel.yaml's scanner without work that comes to nothing: it is asked for each token several times."""

    @cached_property
    def reader(self) -> Any:
        """What it reads from."""
        return self.loader.reader

    def need_more_tokens(self) -> bool:
        """Whether the next token is not known yet, or may turn out to be a key."""
        if self.done or not self.tokens:
            return not self.done
        return bool(self.possible_simple_keys) and super().need_more_tokens()

    def check_token(self, *choices: Any) -> bool:
        """Whether there is a next token, of one of these kinds."""
        while self.need_more_tokens():
            self.fetch_more_tokens()
        return bool(self.tokens) and (not choices or isinstance(self.tokens[0], choices))


class _Parser(Parser):
    """ruamel.yaml's parser, which looks for its scanner once."""

    @cached_property
    def scanner(self) -> Any:
        """What it takes tokens from."""
        return self.loader.scanner


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet.

    Attributes:
        node: The node.
        is_mapping: Whether what comes is key and value in turn.
        values: How many there were before it.
        characters: Likewise.
        key: Of a mapping: the key whose value comes next.
    """

    node: Node
    is_mapping: bool
    values: int
    characters: int
    key: Node | None = None


class _Composer:
    """Makes nodes of events."""

    def __init__(self, resolve: Resolve | None) -> None:
        self._resolve = resolve
        self._anchors: dict[str, Node] = {}
        self._grown: dict[int, tuple[int, int]] = {}
        """Values and characters of nodes with an anchor, by identity, once their end has come."""
        self._values = 0
        self._characters = 0
        self._open: list[_Open] = []

    def document(self, events: Iterable[Any]) -> Node | None:
        """The root node of the only document."""
        root: Node | None = None
        for event in events:
            if isinstance(event, ScalarEvent):
                node = self._scalar(event)
            elif isinstance(event, SequenceStartEvent | MappingStartEvent):
                node = self._collection(event)
            elif isinstance(event, AliasEvent):
                node = self._aliased(event)
            elif isinstance(event, CollectionEndEvent):
                self._close(event)
                continue
            elif isinstance(event, DocumentStartEvent) and root is not None:
                what = "expected a single document in the stream"
                raise ComposerError(what, root.start_mark, "but found another document", event.start_mark)
            else:
                continue
            if root is None:
                root = node
        return root

    def _scalar(self, event: ScalarEvent) -> Node:
        node = ScalarNode(self._tag(ScalarNode, event, event.value), event.value, event.start_mark, style=event.style)
        self._add(node, event)
        self._count(1, len(event.value), event)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
            self._grown[id(node)] = (1, len(event.value))
        return node

    def _collection(self, event: SequenceStartEvent | MappingStartEvent) -> Node:
        is_mapping = isinstance(event, MappingStartEvent)
        kind = MappingNode if is_mapping else SequenceNode
        node = kind(self._tag(kind, event, None), [], event.start_mark, flow_style=event.flow_style)
        self._add(node, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if len(self._open) == DEPTH_MAX:
            raise _too_much(event, f"nested more than {DEPTH_MAX} deep")
        self._open.append(_Open(node, is_mapping, self._values, self._characters))
        self._count(1, 0, event)
        return node

    def _aliased(self, event: AliasEvent) -> Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            raise ComposerError(None, None, f"found undefined alias {event.anchor!r}", event.start_mark)
        self._add(node, event)
        # What contains itself is told by who builds data of it.
        self._count(*self._grown.get(id(node), (1, 0)), event)
        return node

    def _close(self, event: Any) -> None:
        closed = self._open.pop()
        closed.node.end_mark = event.end_mark
        self._grown[id(closed.node)] = (self._values - closed.values, self._characters - closed.characters)

    def _add(self, node: Node, event: Any) -> None:
        """Adds a node to what it is in."""
        if not self._open:
            return
        parent = self._open[-1]
        if not parent.is_mapping:
            parent.node.value.append(node)
        elif parent.key is None:
            parent.key = node
        else:
            parent.node.value.append((parent.key, node))
            parent.key = None

    def _count(self, values: int, characters: int, event: Any) -> None:
        self._values += values
        self._characters += characters
        if self._values > VALUES_MAX:
            raise _too_much(event, f"more than {VALUES_MAX} values, with what aliases stand for")
        if self._characters > GROWN_CHARACTERS_MAX:
            raise _too_much(event, f"more than {GROWN_CHARACTERS_MAX} characters, with what aliases stand for")

    def _tag(self, kind: type[Node], event: Any, value: Any) -> Any:
        tag = event.ctag
        if tag is not None and str(tag) != "!":
            return tag
        return self._resolve(kind, value, event.implicit) if self._resolve else UNRESOLVED


def _too_much(event: Any, reason: str) -> LimitError:
    return LimitError(event.start_mark.line + 1, event.start_mark.column + 1, reason)
