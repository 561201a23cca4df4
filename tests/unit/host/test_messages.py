"""What an agent may say, and that whatever else comes over its line is refused in so many words."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.host.channel import Channel
from dilaton.host.errors import GuestError
from dilaton.host.messages import SHAPES, Names, parse
from dilaton.plan.model import Plan

PLAN = Plan.model_validate_json((Path(__file__).parents[1] / "plan" / "golden" / "plan.json").read_text())
PROCESS = {"process": PLAN.processes[0].name, "node": PLAN.processes[0].node}
EXITED = {"type": "event", "t_ns": 5, "kind": "exited", "expected": True, "timed_out": False, "stopped": False}

GOOD: list[dict[str, Any]] = [
    {"type": "hello", "protocol": 1, "version": "0.1.0", "kernel": "6.1.176"},
    {"type": "ready"},
    {"type": "finished", "t_ns": 123, "outcome": "done", "reason": ""},
    {"type": "event", "t_ns": 0, "kind": "started", "pid": 7, **PROCESS},
    EXITED | {"status": 255} | PROCESS,
    EXITED | {"signal": 9} | PROCESS,
    {"type": "event", "t_ns": 5, "kind": "link-changed", "at_ns": 0, "link": PLAN.links[0].name},
    {"type": "event", "t_ns": 5, "kind": "memory-short", "node": PLAN.nodes[0].name, "memory": "tcp", "times": 2},
]

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("message", GOOD, ids=lambda message: str(message.get("kind", message["type"])))
def test_what_an_agent_says_is_taken_as_it_is(message: dict[str, Any]) -> None:
    assert parse(json.dumps(message).encode()) == message
    Names(PLAN).check(message)


@given(st.sampled_from(GOOD), st.data())
def test_a_forged_field_is_refused_or_of_the_right_kind(message: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(message)))
    value = data.draw(anything)
    try:
        taken = parse(json.dumps(message | {name: value}).encode())
    except ValueError:
        return
    assert type(taken[name]) is type(message[name])
    if isinstance(taken[name], int):
        assert 0 <= taken[name] < 1 << 63
    json.dumps(taken, ensure_ascii=False).encode()


@given(st.binary(max_size=80) | anything.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_a_message_or_refused(line: bytes) -> None:
    try:
        message = parse(line)
    except ValueError:
        return
    assert message["type"] in {*SHAPES, "event"}


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"finished","t_ns":NaN,"outcome":"done","reason":""}',
        b'{"type":"finished","t_ns":1e999,"outcome":"done","reason":""}',
        b'{"type":"finished","t_ns":-1,"outcome":"done","reason":""}',
        b'{"type":"finished","t_ns":true,"outcome":"done","reason":""}',
        b'{"type":"finished","t_ns":9223372036854775808,"outcome":"done","reason":""}',
        b'{"type":"finished","t_ns":1,"outcome":"won","reason":""}',
        b'{"type":"fatal","reason":"\\ud800"}',
        b'{"type":"ready","more":1}',
        b'{"type":"event","t_ns":1,"kind":"session-began"}',
        b'{"type":"event","t_ns":1,"kind":["ready"]}',
        b'{"type":["ready"]}',
        b"[" * 60_000,
        b'{"type":"finished","t_ns":' + b"9" * 60_000 + b"}",
    ],
    ids=lambda line: line[:60].decode(),
)
def test_messages_that_lie_are_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"no JSON|no object|no known kind|fields"):
        parse(line)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"process": "nobody", "node": PROCESS["node"]}, "no process nobody"),
        ({"process": PROCESS["process"], "node": "nowhere"}, f"no process {PROCESS['process']} of nowhere"),
        ({"node": "nowhere"}, "no node nowhere"),
        ({"link": "none"}, "no link none"),
    ],
)
def test_an_event_about_what_is_not_in_the_plan_is_refused(about: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Names(PLAN).check({"type": "event", **about})


def test_a_channel_says_what_came_instead_of_a_message() -> None:
    async def hear() -> None:
        channel = Channel()
        try:
            await channel.open()
            os.write(channel.guest_fd, b'{"type":"event","t_ns":NaN}\n')
            with pytest.raises(GuestError, match=r"no message \(of no known kind\): .*NaN"):
                await channel.receive()
        finally:
            channel.close()
            os.close(channel.guest_fd)

    asyncio.run(hear())
