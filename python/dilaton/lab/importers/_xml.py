"""XML that somebody else wrote: read once, in order, without entities, and with bounds.

An entity is text that stands for other text, which lets a file of a kilobyte grow to gigabytes, or names another file
or a URL. So whatever declares one is refused as it is declared, wherever that is; nothing is fetched; and how deep
elements are nested is bounded, as is how long the file is (`_importer.read_text`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

DEPTH_MAX = 100
"""Elements within elements; far more than any format of networks has."""

ELEMENTS_MAX = 200_000
"""Of a tree, which takes some hundreds of bytes for each; four for each node and link that is read."""

OF_NAME = " "
"""Between the namespace of a name and the name, where neither has one."""


@dataclass(frozen=True)
class Element:
    """An element: its name without a namespace, its attributes, its children, and where it begins.

    Attributes:
        namespace: Empty: none.
        place: `file:line:column`.
    """

    name: str
    namespace: str
    attributes: dict[str, str]
    place: str
    children: list[Element] = field(default_factory=list)


def scan(text: str, path: Path, what: str, begin: Callable[[Element], None], end: Callable[[], None]) -> None:
    """Tells of each element as it begins and ends.

    Args:
        text: The file's.
        path: For messages.
        what: What the file is to be, such as `GraphML`.
        begin, end: Are told.

    Raises:
        ValueError: it is not well-formed, declares entities, or is nested too deeply; or what `begin` says.
    """
    parser = expat.ParserCreate("utf-8", OF_NAME)
    depth = 0

    def here() -> str:
        return f"{path}:{parser.CurrentLineNumber}:{parser.CurrentColumnNumber + 1}"

    def refuse(*_: object) -> None:
        raise ValueError(f"{here()}: not {what}: it defines entities, which grow when they are read; write them out")

    def began(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEPTH_MAX:
            raise ValueError(f"{here()}: not {what}: elements nested more than {DEPTH_MAX} deep")
        namespace, _, local = name.rpartition(OF_NAME)
        begin(Element(local, namespace, attributes, here()))

    def ended(_: str) -> None:
        nonlocal depth
        depth -= 1
        end()

    parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = began, ended
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        place = f"{path}:{error.lineno}:{error.offset + 1}"
        raise ValueError(f"{place}: not {what}: {expat.ErrorString(error.code)}") from error


def read_tree(text: str, path: Path, what: str) -> Element:
    """The outermost element of a text, with all elements in it; as `scan`."""
    top = Element("", "", {}, str(path))
    inside, count = [top], 0

    def begin(element: Element) -> None:
        nonlocal count
        count += 1
        if count > ELEMENTS_MAX:
            raise ValueError(f"{element.place}: not {what}: more than {ELEMENTS_MAX} elements")
        inside[-1].children.append(element)
        inside.append(element)

    def end() -> None:
        inside.pop()

    scan(text, path, what, begin, end)
    return top.children[0]
