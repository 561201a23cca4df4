"""Reads a lab, in a process and a jail of its own: `python -m dilaton.server.labs.worker`, JSON in, JSON out.

A lab is written by somebody, and may be made to take all memory and time, or to name files that are not theirs. What is
done here is what a run does before it boots; what comes of it is its plan, or its mistakes with their places.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from dilaton.host.errors import HostLacksError
from dilaton.lab.errors import LabError
from dilaton.server.labs.drawing import drawing
from dilaton.service import prepare
from dilaton.service.errors import RequestError
from dilaton.service.request import LabText, Overrides


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What is to be said about a lab."""
    return wrong_words(lambda: _points(asked) if "points" in asked else _read(asked))


def wrong_words(said: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What is said, or what is wrong with a lab, in the words that the server takes."""
    try:
        return said()
    except LabError as error:
        return {"problems": [asdict(problem) for problem in error.problems]}
    except RequestError as error:
        return {"wrong": error.message, "field": error.field}
    except HostLacksError as error:
        return {"lacks": error.what, "fix": error.fix}


def _points(asked: dict[str, Any]) -> dict[str, Any]:
    """What is to be known of a lab with each of several lists of settings: whether it runs, and what that takes."""
    found = []
    for settings in asked["points"]:
        lab = LabText(text=asked["text"], name="lab.yaml")
        which = f"with {', '.join(settings)}: " if settings else ""
        try:
            prepared = prepare.prepare(lab, Overrides(settings=tuple(settings)))
            prepare.refuse_hopeless(prepared)
            prepare.refuse_division(prepared.plan, asked["machines"])
        except LabError as error:
            raise LabError([replace(one, message=which + one.message) for one in error.problems]) from error
        except RequestError as error:
            raise RequestError(which + error.message, error.field) from error
        found.append(
            {
                "name": prepared.lab.name,
                "seed": prepared.lab.seed,
                "memory_bytes": [guest.memory_bytes for guest in prepared.plan.guests],
                "drawing": drawing(prepared.lab, prepared.plan, prepare.cost(prepared)).model_dump(mode="json"),
            }
        )
    return {"points": found}


def _read(asked: dict[str, Any]) -> dict[str, Any]:
    prepared = prepare.prepare(
        LabText(text=asked["text"], name="lab.yaml"), Overrides.model_validate(asked["overrides"])
    )
    doubts = [asdict(problem) for problem in prepare.doubts(prepared)]
    prepare.refuse_hopeless(prepared)
    prepare.refuse_division(prepared.plan, asked["machines"])
    drawn = drawing(prepared.lab, prepared.plan, prepare.cost(prepared)).model_dump(mode="json")
    # Of a thousand routers the routes alone are tens of megabytes, which nobody needs who draws.
    plan = None if asked["is_drawn"] else prepared.plan.model_dump(mode="json")
    memory_bytes = [guest.memory_bytes for guest in prepared.plan.guests]
    return {
        "name": prepared.lab.name,
        "doubts": doubts,
        "memory_bytes": memory_bytes,
        "drawing": drawn,
        "plan": plan,
    }


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
