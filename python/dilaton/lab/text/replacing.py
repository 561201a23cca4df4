"""Changing single fields of a lab's text and nothing else of it: comments, order and layout stay."""

from __future__ import annotations

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dilaton.lab.text.yaml_nodes import compose


def replace_field(text: str, steps: tuple[str, ...], value: str) -> str:
    """A lab's text with another value of a field.

    Args:
        text: Of a lab without mistakes.
        steps: Names, and numbers of list items.
        value: As it would be written there.

    Raises:
        ValueError: The text has no such field, or it holds more than one word.
    """
    shown, place = ".".join(steps), _at(text, steps)
    if place is None:
        raise ValueError(f"{shown}: the lab has no such field; one that can be changed is written in it")
    if not isinstance(place, ScalarNode):
        raise ValueError(f"{shown}: a list or mapping; name the field in it that can be changed")
    begin, end = place.start_mark.index, place.end_mark.index
    if place.style in ("|", ">") or begin == end:
        raise ValueError(f"{shown}: nothing, or text of several lines; write a word there that can be changed")
    changed = f"{text[:begin]}{value}{text[end:]}"
    # A value may not be one where it stands, as one with a comma in braces, and would say something else of the lab.
    try:
        alone, there = YAML().compose(value), _at(changed, steps)
    except YAMLError:
        alone = there = None
    if not isinstance(alone, ScalarNode) or not isinstance(there, ScalarNode) or alone.value != there.value:
        raise ValueError(f"{shown}: {value}: not a word that can stand there; write it in quotes")
    return changed


def read_field(text: str, steps: tuple[str, ...]) -> str:
    """The value of a field, as text.

    Raises:
        ValueError: The text has no such field, or it holds more than one word.
    """
    replace_field(text, steps, "x")
    place = _at(text, steps)
    assert isinstance(place, ScalarNode)
    return str(place.value)


def _at(text: str, steps: tuple[str, ...]) -> Node | None:
    """What is there, and where it ends, which our own reader does not tell; it has limits, and is asked first."""
    compose(text)
    place: Node | None = YAML().compose(text)
    for step in steps:
        if isinstance(place, MappingNode):
            place = next((item for key, item in place.value if key.value == step), None)
        elif isinstance(place, SequenceNode):
            is_item = step.isascii() and step.isdigit() and int(step) < len(place.value)
            place = place.value[int(step)] if is_item else None
        else:
            place = None
    return place
