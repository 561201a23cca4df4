"""Makes of a lab what the command line makes of it, in a process and a jail of its own: `python -m
dilaton.server.labs.deriving`, JSON in, JSON out.

Nothing is kept of what comes of it, and no run begins: whoever asked has it, as a file or as another lab.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from dilaton.lab.images.find import digests
from dilaton.plan.export import export
from dilaton.plan.scale import nodes_per_guest_max
from dilaton.run import here
from dilaton.server.labs.worker import wrong_words
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides
from dilaton.service.studies.scale import proposed, scaled_text


def exported(text: LabText, overrides: dict[str, Any], form: str) -> dict[str, Any]:
    """The network of a lab for another program."""
    prepared = prepare(text, Overrides.model_validate(overrides))
    written, left_out = export(prepared.lab, prepared.plan, form)
    return {"text": written, "left_out": left_out}


def locked(text: LabText) -> dict[str, Any]:
    """Which images the names in a lab mean."""
    return {"images": digests(node.image for node in prepare(text, Overrides()).lab.nodes.values())}


def scaled(text: LabText, onto: int, machines: int | None, *, confirm: bool) -> dict[str, Any]:
    """A lab on few guests, which can run, and what that means."""
    lab, proposal = proposed(text, onto, machines)
    made = LabText(text=scaled_text(text.text, lab, proposal, confirm=confirm), name=text.name)
    prepare(made, Overrides())
    most, bound = nodes_per_guest_max(lab)
    return {
        "text": made.text,
        "tdf": proposal.tdf,
        "guests": [asdict(part) | {"cpu": float(part.cpu)} for part in proposal.parts],
        "machines_per_guest_max": most,
        "bound": bound,
        "not_scaled": list(proposal.losses),
        "host_s_per_virtual_s_max": proposal.host_s_max(1, here.for_plans().cores),
    }


VERBS: dict[str, Callable[..., dict[str, Any]]] = {"export": exported, "lock": locked, "scale": scaled}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What is to be said of a lab that is asked for this verb."""
    verb, text = asked.pop("verb"), LabText(text=asked.pop("text"), name="lab.yaml")
    return wrong_words(lambda: VERBS[verb](text, **asked))


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
