"""A lab with the files beside it as one text, for where a lab is a text and has nothing beside it.

`files: .` has nodes see the lab's directory, in which programs start. In the text every node has these files of its own
instead, at `/`, where programs start unless they are told another place: so what they execute finds them as before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

BESIDE = re.compile(r"^files: \.[ \t]*(#.*)?\n", re.MULTILINE)
DEFAULTS = re.compile(r"^defaults:", re.MULTILINE)


def single(lab: str, beside: Mapping[str, str]) -> str | None:
    """The text of a lab with the files that it names.

    Args:
        lab: Its text.
        beside: The files beside it, by their names, with what is in them.

    Returns:
        None: It needs a file in a way that its text cannot say, such as a network that is read from one.
    """
    said = re.sub(r"(^|\s)#.*", "", lab)
    named = {name: text for name, text in beside.items() if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", said)}
    if not named:
        return lab
    if not BESIDE.search(lab) or DEFAULTS.search(lab):
        return None
    files = "".join(f"    /{name}:\n      text: {_block(text)}" for name, text in named.items())
    return f"{BESIDE.sub('', lab).rstrip()}\ndefaults:\n  files: # that every node has\n{files}"


def _block(text: str) -> str:
    """A text as a literal block of YAML, eight columns to the right."""
    lines = text.splitlines(keepends=True)
    ending = "-" if not text.endswith("\n") else "" if lines[-1].strip() else "+"
    indented = "".join(line if line == "\n" else " " * 8 + line for line in lines)
    return f"|{'2' if text[:1].isspace() else ''}{ending}\n{indented}" + ("" if text.endswith("\n") else "\n")
