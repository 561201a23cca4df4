"""Saves runs, reads what was saved, and compares a run with what it repeats, in a process and a jail of its own:
`python -m dilaton.server.saved.worker`, JSON in, lines of JSON out, of which the last is the answer.

What is read here, guests wrote, or a lab's writer: what nodes send when they are saved, run directories, labs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dilaton.host.sparse import taken_bytes
from dilaton.run.control.errors import ControlError
from dilaton.server.labs.drawing import drawing
from dilaton.server.labs.worker import wrong_words
from dilaton.server.workers import teller
from dilaton.service import prepare
from dilaton.service.request import LabText, Overrides, RunRequest
from dilaton.service.saved.repeat import compared, repeatable
from dilaton.service.saved.restore import reading, restored
from dilaton.service.saved.save import Share, save
from dilaton.service.saved.store import LAB, SavedLabs, about
from dilaton.templates.store import TemplateError


def saved(store: str, run: str, name: str, share: dict[str, Any]) -> dict[str, Any]:
    """Saves a run that goes on, where all that is somebody's takes no more than so much then."""
    labs = SavedLabs(Path(store))
    _, left_out = save(labs, Path(run), name, teller(), Share(**share))
    return {"saved": _shown(labs, name, labs.names()[name]), "left_out": left_out}


def taken(stores: dict[str, list[str]], person: str) -> dict[str, Any]:
    """How much room all take in some stores that somebody has saved, with the names of what does not say so."""
    return {"bytes": sum(SavedLabs(Path(store)).taken_bytes(person, before=names) for store, names in stores.items())}


def listed(store: str) -> dict[str, Any]:
    """All that are saved, and what is wrong with those that are damaged."""
    labs = SavedLabs(Path(store))
    found, broken = [], []
    for name, digest in labs.names().items():
        try:
            found.append(_shown(labs, name, digest))
        except TemplateError as error:
            broken.append({"name": name, "wrong": str(error)})
    return {"saved": found, "broken": broken}


def removed(store: str, name: str) -> dict[str, Any]:
    """Removes one; runs that have begun with it go on."""
    labs = SavedLabs(Path(store))
    if name not in labs.names():
        return {"wrong": f"{name}: no such saved lab in this folder", "is_missing": True}
    labs.remove(name)
    return {}


def read(store: str, name: str, overrides: dict[str, Any]) -> dict[str, Any]:
    """What a run that goes on from one would be."""
    labs = SavedLabs(Path(store))
    if name not in labs.names():
        return {"wrong": f"{name}: no such saved lab in this folder", "is_missing": True}
    with reading(name, labs.directory) as tree:
        text = LabText.read(tree / LAB)
        prepared = restored(RunRequest(lab=text, overrides=Overrides.model_validate(overrides)), tree)
        prepare.refuse_hopeless(prepared)
        return {
            "name": prepared.lab.name,
            "text": text.text,
            "digest": tree.name,
            "memory_bytes": [guest.memory_bytes for guest in prepared.plan.guests],
            "drawing": drawing(prepared.lab, prepared.plan, prepare.cost(prepared)).model_dump(mode="json"),
        }


def asked_again(run: str, at: str) -> dict[str, Any]:
    """What is to be asked for so that a run is repeated up to an instant."""
    found = repeatable(Path(run), at)
    return {"settings": found.settings, "stays": found.stays}


def looked_at(run: str, again: str, at: str) -> dict[str, Any]:
    """Compares a run that is held at an instant with the one that it repeats."""
    found = compared(Path(run), Path(again), repeatable(Path(run), at).at_ns)
    return {"events": found.events, "bytes": found.bytes}


def _shown(labs: SavedLabs, name: str, digest: str) -> dict[str, Any]:
    tree = labs.directory / "trees" / digest
    found = about(tree)
    return {"name": name, "size_bytes": taken_bytes(tree), **found.model_dump(exclude={"run"})}


VERBS: dict[str, Callable[..., dict[str, Any]]] = {
    "save": saved,
    "taken": taken,
    "list": listed,
    "remove": removed,
    "read": read,
    "repeat": asked_again,
    "compare": looked_at,
}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What is to be said."""
    try:
        return wrong_words(lambda: VERBS[asked.pop("do")](**asked))
    except ControlError as error:
        return {"wrong": error.message}
    except (TemplateError, OSError, ValueError) as error:
        return {"wrong": str(error)}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
