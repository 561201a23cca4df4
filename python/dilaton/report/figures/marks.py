"""What happened in a run, as bands of what lasted and marks of instants, in few words.

What a link becomes at an instant is in the words of the lab. Everything of one instant shares one mark: whoever cuts a
network in two changes many links at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dilaton.report.figures.bands import Band

NOT_MARKED = {"started", "ready", "exited", "skipped", "link-steered", "fault-steered", "began", "undone"}
"""What processes and faults do, which have bands; and who changed a link: that it changed is an event, too."""


def marks_of(events: pd.DataFrame, end_s: float) -> list[Band]:
    """The changes and faults of a run, in the order of time.

    Args:
        events: As `Run.events`.
        end_s: Its end.
    """
    rows = [{name: value for name, value in row.items() if pd.notna(value)} for row in events.to_dict("records")]
    named = _short_names([row["link"] for row in rows if row["kind"] == "link-changed"])
    instants: dict[float, dict[tuple[str, str], list[str]]] = {}
    for row in rows:
        if row["kind"] == "link-changed" and "what" in row:
            who = instants.setdefault(row["at_ns"] / 1e9, {}).setdefault(("links", str(row["what"])), [])
            who.extend({named[row["link"]]} - set(who))
        elif row["kind"] not in NOT_MARKED or not row.get("expected", True):
            instants.setdefault(row["t_s"], {}).setdefault(("times", str(row["kind"])), []).append(_subject(row))
    marks = [Band("; ".join(_words(said)), at, at) for at, said in sorted(instants.items())]
    return [*_outages(rows, end_s), *_faults(rows, end_s), *marks]


def _words(said: Mapping[tuple[str, str], Sequence[str]]) -> Iterator[str]:
    for (many, what), who in said.items():
        yield f"{who[0] if len(who) == 1 else f'{len(who)} {many}'} {what}".strip()


def _subject(row: Mapping[str, Any]) -> str:
    return next(
        (str(row[name]) for name in ("process", "link", "fault", "program", "table", "node") if name in row), ""
    )


def _short_names(links: Sequence[str]) -> dict[str, str]:
    """Links without their interfaces, as long as these tell no two of them apart."""
    short = {link: "--".join(end.partition(":")[0] for end in link.split("--")) for link in links}
    return short if len(set(short.values())) == len(short) else {link: link for link in links}


def _outages(rows: Sequence[Mapping[str, Any]], end_s: float) -> Iterator[Band]:
    """When at least one link was down; the marks at both ends say which."""
    down: set[str] = set()
    begin_s = 0.0
    for row in rows:
        if row["kind"] != "link-changed" or "up" not in row:
            continue
        before = bool(down)
        (down.discard if row["up"] else down.add)(row["link"])
        at_s = row["at_ns"] / 1e9
        if down and not before:
            begin_s = at_s
        elif before and not down:
            yield Band("", begin_s, at_s, kind="outage")
    if down:
        yield Band("", begin_s, end_s, kind="outage")


def _faults(rows: Sequence[Mapping[str, Any]], end_s: float) -> Iterator[Band]:
    """Yields the span in which each fault lasted: to the end, where it was not undone."""
    undone = {str(row.get("fault")): row["t_s"] for row in rows if row["kind"] == "undone"}
    for row in rows:
        if row["kind"] == "began":
            yield Band(str(row.get("what")), row["t_s"], undone.get(str(row.get("fault")), end_s), "fault")
