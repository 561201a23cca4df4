"""`dilaton link`: links of a run that goes on, shown and changed from another terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dilaton.cli.errors import refusing
from dilaton.cli.steering.asking import Reach, here
from dilaton.cli.steering.tc import tc_lines
from dilaton.cli.terminal import Output
from dilaton.lab.settings import parse_setting
from dilaton.plan.links.queues import Egress
from dilaton.run.control.answers import LINK_CHANGE, LINK_SHOW, LinkShown
from dilaton.run.control.errors import ControlError
from dilaton.run.record.link_words import describe

ACTIONS = ("show", "set", "down", "up")


@refusing(ControlError)
def steer_link(
    run: str, link: str | None, action: str, fields: Sequence[str], at: str | None, reach: Reach = here
) -> int:
    """Does `action` with a link of `run`, and shows what it is then; returns the exit status.

    Args:
        run: The run.
        link: The link; None: all of them are shown.
        action: One of `ACTIONS`.
        fields: For `set`: FIELD=VALUE.
        at: The virtual instant of the change; None: now.
        reach: Finds the run.
    """
    console = Output()
    settings = _settings(action, fields, at)
    with reach(run) as client:
        if settings is None:
            for shown in client.request(LINK_SHOW, **({"link": link} if link else {}))["links"]:
                _print_link(console, shown)
            return 0
        if link is None:
            raise ControlError(f"{action} wants a link, such as a--b")
        when = {"at": at} if at else {}
        done = client.request(LINK_CHANGE, link=link, settings=settings, directory=os.getcwd(), **when)
        console.print(f"changed at {done['at_ns'] / 1e9:.6f} s of virtual time")
        for shown in done["links"]:
            _print_link(console, shown)
    return 0


def _settings(action: str, fields: Sequence[str], at: str | None) -> list[tuple[str, str]] | None:
    """What a change sets; None: nothing, the link is only shown."""
    if action not in ACTIONS:
        raise ControlError(f"{action}: not something to do with a link; use {', '.join(ACTIONS)}")
    if action == "set":
        found = [_setting(field) for field in fields]
        if not found:
            raise ControlError("set wants values, such as set loss=5% delay=50ms")
        return found
    if fields:
        raise ControlError(f"{fields[0]}: {action} takes no values; write set {fields[0]}")
    if action == "show":
        if at:
            raise ControlError(f"--at {at}: show is of now")
        return None
    return [("down", "true" if action == "down" else "false")]


def _setting(text: str) -> tuple[str, str]:
    try:
        return parse_setting(text)
    except ValueError as error:
        raise ControlError(f"set {text}: write FIELD=VALUE, such as loss=5% or b_to_a.rate=1Mbit") from error


def _print_link(console: Output, shown: LinkShown) -> None:
    under = f" (under {', '.join(shown['faults'])})" if shown["faults"] else ""
    console.print(f"{shown['link']}{'' if shown['up'] else ': down'}{under}", style="bold")
    for end in shown["ends"]:
        egress = Egress.model_validate(end["egress"])
        console.print(f"  from {end['node']}: {describe(egress, end['wire_delay_ns'])}")
        for line in tc_lines(end["interface"], egress):
            console.print(f"    {line}", style="dim", soft_wrap=True)
