"""Events as they are recorded, and as they are read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError, validate

from dilaton.host.messages import Began, Event, LinkChanged, Spinning, Undone
from dilaton.run.record.events import (
    KINDS,
    FaultSteered,
    LinkBecame,
    LinkSteered,
    SessionBegan,
    SessionEnded,
    event_of,
    faults_of,
)

SCHEMA = Path(__file__).resolve().parents[4] / "docs" / "control.schema.json"

RECORDED: list[Event] = [
    Spinning(t_ns=3, node="a", program="loop"),
    LinkChanged(t_ns=3, link="a--b", at_ns=0),
    LinkBecame(t_ns=3, link="a--b", at_ns=0, what="down", up=False),
    LinkSteered(t_ns=3, link="a--b", asked="down=true", at_ns=3, file="update-link-1.json", host_s=0.5),
    FaultSteered(t_ns=3, fault="cut", asked="undo", file="update-faults-1.json", host_s=1),
    SessionBegan(t_ns=3, node="a", program="sh", host_s=0.25),
    SessionEnded(t_ns=4, node="a", program="sh", status=None, host_s=0.25),
    SessionEnded(t_ns=4, node="a", program="sh", status=3, host_s=0.25),
]


@pytest.mark.parametrize("event", RECORDED, ids=repr)
def test_what_was_recorded_is_read_as_what_it_was(event: Event) -> None:
    assert event_of(json.loads(json.dumps(event.record()))) == event


@pytest.mark.parametrize("event", RECORDED, ids=repr)
def test_the_published_schema_knows_what_is_recorded(event: Event) -> None:
    schema = json.loads(SCHEMA.read_text())["events"][event.tag]
    validate(event.record(), schema)
    with pytest.raises(ValidationError):
        validate(event.record() | {"more": 1}, schema)


@pytest.mark.parametrize(
    "row",
    [
        {"t_ns": 1, "kind": "melted", "node": "a"},
        {"t_ns": 1, "kind": "started", "node": "a"},
        {"t_ns": 1, "kind": "exited", "node": "a", "status": 999},
        {"t_ns": -1, "kind": "spinning", "node": "a", "program": "loop"},
        {"t_ns": 1, "kind": "unknown", "fields": {}},
    ],
)
def test_what_this_version_does_not_know_is_kept_as_it_is(row: dict[str, Any]) -> None:
    kept = event_of(row)
    assert kept.tag == "unknown" and kept.record() == row


@pytest.mark.parametrize("row", [[], "started", {"kind": "started"}, {"t_ns": True, "kind": "x"}, {"t_ns": 1}])
def test_what_is_no_event_is_refused(row: object) -> None:
    with pytest.raises(ValueError, match="an object with kind and t_ns"):
        event_of(row)


def test_only_a_link_that_changed_and_an_end_have_several_forms() -> None:
    assert {kind for kind, forms in KINDS.items() if len(forms) > 1} == {"exited", "link-changed", "skipped", "undone"}


def test_a_fault_lasts_until_it_is_undone_each_time() -> None:
    events: list[Event] = [
        Undone(t_ns=10**9, fault="never", what="x"),
        Began(t_ns=10**9, fault="cut", what="x"),
        Began(t_ns=2 * 10**9, fault="slow", what="y"),
        Undone(t_ns=3 * 10**9, fault="cut", what="x"),
        Began(t_ns=4 * 10**9, fault="cut", what="x"),
    ]
    assert faults_of(events) == [("cut", "x", 1.0, 3.0), ("slow", "y", 2.0, None), ("cut", "x", 4.0, None)]
