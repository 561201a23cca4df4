"""`dilaton fault`: faults in a run that goes on, begun, listed and undone from another terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from dilaton.cli.errors import refusing
from dilaton.cli.steering.asking import Reach, here
from dilaton.cli.terminal import Output
from dilaton.lab.errors import LabError
from dilaton.lab.settings import apply_settings, parse_setting
from dilaton.lab.text import units
from dilaton.lab.text.document import read_document
from dilaton.run.control.answers import FAULT_BEGIN, FAULT_LIST, FAULT_UNDO, FaultShown
from dilaton.run.control.errors import ControlError

ACTIONS = ("list", "undo")
"""What can be done with faults by a word; what else is written is a fault."""


@refusing(ControlError)
def steer_faults(run: str, words: Sequence[str], reach: Reach = here) -> int:
    """Begins a fault of `run`, lists its faults or undoes some, and shows them; returns the exit status.

    Args:
        run: The run.
        words: `list`; `undo` and names; or a fault, each field as FIELD=VALUE, or all as in a lab, in braces.
        reach: Finds the run.
    """
    action, *names = words or ["list"]
    console = Output()
    if action == "list" and names:
        raise ControlError(f"{names[0]}: list takes nothing more")
    fault = None if action in ACTIONS else written(words)
    with reach(run) as client:
        if action == "list":
            shown = client.request(FAULT_LIST)["faults"]
            for one in shown:
                _print_fault(console, one)
            if not shown:
                console.print("no faults")
            return 0
        if fault is None:
            done, what = client.request(FAULT_UNDO, names=names), "undone"
        else:
            done, what = client.request(FAULT_BEGIN, fault=fault, directory=os.getcwd()), "begun"
            # An agent that begins it has said so by now.
            if any(one["state"] == "waiting" for one in done["faults"]):
                what = "taken over"
        console.print(f"{what} at {done['t_ns'] / 1e9:.6f} s of virtual time")
        for one in done["faults"]:
            _print_fault(console, one)
    return 0


def written(words: Sequence[str]) -> dict[str, Any]:
    """The fields of a fault.

    Raises:
        ControlError: The words are none.
    """
    data: dict[str, Any] = {}
    try:
        if words[0].lstrip().startswith("{"):
            document = read_document(" ".join(words), "fault")
            if document.problems:
                raise LabError(document.problems)
            data = document.data
        else:
            apply_settings(data, [parse_setting(word) for word in words])
    except ValueError as error:
        example = "pause=db1 for=3s, or '{link: a--b, loss: 30%, for: 5s}'"
        raise ControlError(f"{words[0]}: write list, undo NAME, or a fault as in the lab, such as {example}") from error
    except LabError as error:
        raise ControlError(str(error)) from error
    return data


def _print_fault(console: Output, shown: FaultShown) -> None:
    began, ended = (_instant(shown[field]) for field in ("began_ns", "ended_ns"))
    match shown["state"]:
        case "lasting":
            until = "" if shown["for_ns"] is None else f" for {units.format_duration(shown['for_ns'])}"
            state = f"lasts since {began}{until}"
        case "over":
            state = f"was from {began} to {ended}"
        case "skipped":
            state = "was skipped"
        case _:
            state = "has not begun"
    console.print(f"{shown['name']}: {shown['what']}: {state}", soft_wrap=True)


def _instant(ns: int | None) -> str:
    return "" if ns is None else f"{ns / 1e9:.6f} s"
