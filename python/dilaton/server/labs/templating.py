"""Reads templates and begins labs with them, in a process and a jail of its own: `python -m
dilaton.server.labs.templating`, JSON in, JSON out.

What a template says of itself is YAML that somebody wrote, and so is its lab: neither is read in the server's process.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from dilaton.lab.errors import LabError
from dilaton.lab.text.replacing import replace_field
from dilaton.server.labs.worker import wrong_words
from dilaton.service import prepare
from dilaton.service.request import LabText, Overrides
from dilaton.templates.description import FILE, ChoiceError, Description, defaults, filled, read_description

NAME_MAX = 60


def described(text: str, description: str) -> dict[str, Any]:
    """What a template says of itself, whose lab has no mistakes."""
    try:
        found = read_description(description, FILE) if description.strip() else Description()
        values = defaults(found, text)
    except LabError as error:
        first = error.problems[0]
        return {"wrong": f"{FILE}:{first.line}:{first.column}: {first.message}", "field": "description"}
    except ValueError as error:
        return {"wrong": str(error), "field": "description"}
    _read(text)
    parameters = [
        {"name": name, "fields": list(one.fields), "about": one.about, "default": values[name]}
        for name, one in found.parameters.items()
    ]
    return {"title": found.title or _heading(text), "parameters": parameters}


def begun(text: str, description: str, chosen: dict[str, str], name: str) -> dict[str, Any]:
    """The text of a lab that begins with a template."""
    try:
        found = read_description(description, FILE) if description.strip() else Description()
        text = filled(found, text, chosen)
    except ChoiceError as error:
        return {"wrong": f"{error.name}: {error.why}", "field": f"chosen.{error.name}"}
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name)[:NAME_MAX].strip("-")
    text = replace_field(text, ("name",), plain or "lab")
    _read(text)
    return {"text": text}


def _read(text: str) -> None:
    """Reads a lab as a run would."""
    prepare.refuse_hopeless(prepare.prepare(LabText(text=text, name="lab.yaml"), Overrides()))


def _heading(text: str) -> str:
    """What a lab says of itself in its first line."""
    first = text.partition("\n")[0]
    return first.lstrip("# ") if first.startswith("#") else ""


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What is to be said about a template."""
    return wrong_words(lambda: begun(**asked) if "chosen" in asked else described(**asked))


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
