"""What an agent may say, and that whatever else comes over its line is refused in so many words."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.host import messages
from dilaton.host.errors import GuestError
from dilaton.host.here.guests.channel import Channel
from dilaton.host.messages import (
    CHECKS,
    EVENTS,
    FROM_AGENT,
    TO_AGENT,
    LinkChanged,
    Memory,
    Message,
    Names,
    Outcome,
    ProcessReady,
    Spinning,
    Table,
    parse,
)
from dilaton.plan.model import Plan
from tests.conftest import ROOT

PLAN = Plan.model_validate_json((Path(__file__).parents[1] / "plan" / "golden" / "plan.json").read_text())
PROCESS = {"process": PLAN.processes[0].name, "node": PLAN.processes[0].node}
EXAMPLES = [json.loads(line) for line in (ROOT / "crates" / "agent" / "messages.jsonl").read_text().splitlines()]
"""Of every message, in both directions; the agent's own tests hold its types to the same."""
SAID = [message for message in EXAMPLES if message["type"] not in TO_AGENT]
ABOUT = {"node": PLAN.nodes[0].name, "link": PLAN.links[0].name} | PROCESS
GOOD = [message | {name: ABOUT[name] for name in ABOUT if name in message} for message in SAID]
"""What an agent says of the plan; faults, which it has none of, are left out where names matter."""

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("message", GOOD, ids=lambda message: str(message.get("kind", message["type"])))
def test_what_an_agent_says_is_taken_as_it_is(message: dict[str, Any]) -> None:
    said = parse(json.dumps(message).encode())
    assert said.json() == message
    assert list(said.json())[1:3] == list(message)[1:3], "files have events in this order"
    if "fault" not in message:
        Names(PLAN).check(said)


def test_every_message_has_an_example_and_every_example_is_a_message() -> None:
    asked = [form for message in EXAMPLES for form in TO_AGENT.get(message["type"], [])]
    for message in EXAMPLES:
        for form in TO_AGENT.get(message["type"], []):
            fields = {name: value for name, value in message.items() if name != "type"}
            assert form(**fields).json() == message
    assert {*asked, *(type(parse(json.dumps(message).encode())) for message in SAID)} == {
        form for known in (TO_AGENT, FROM_AGENT, EVENTS) for forms in known.values() for form in forms
    }


def test_types_are_checked_as_they_are_written() -> None:
    for alias in (Outcome, Memory, Table):
        name = next(name for name, value in vars(messages).items() if value is alias)
        values = ["done", "stopped", "failed", "tcp", "udp", "node", "guest", "interfaces", "nodes", "sampler", "", 3]
        assert [value for value in values if CHECKS[name].is_good(value)] == [
            value for value in values if value in get_args(alias)
        ]


@given(st.sampled_from(GOOD), st.data())
def test_a_forged_field_is_refused_or_of_the_right_kind(message: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(message)))
    value = data.draw(anything)
    try:
        taken = parse(json.dumps(message | {name: value}).encode()).json()
    except ValueError:
        return
    assert type(taken[name]) is type(message[name])
    if isinstance(taken[name], int):
        # Virtual 0 of a kernel that begins later is before its own.
        assert (-1 << 63 if name in ("zero_ns", "date_ns") else 0) <= taken[name] < 1 << 63
    json.dumps(taken, ensure_ascii=False).encode()


@given(st.binary(max_size=80) | anything.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_a_message_or_refused(line: bytes) -> None:
    try:
        said = parse(line)
    except ValueError:
        return
    assert said.tag in {*FROM_AGENT, *EVENTS}


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
    ("said", "why"),
    [
        (ProcessReady(t_ns=0, process="nobody", node=PROCESS["node"]), "no process nobody"),
        (
            ProcessReady(t_ns=0, process=PROCESS["process"], node="nowhere"),
            f"no process {PROCESS['process']} of nowhere",
        ),
        (Spinning(t_ns=0, node="nowhere", program="sh"), "no node nowhere"),
        (LinkChanged(t_ns=0, link="none", at_ns=0), "no link none"),
    ],
)
def test_an_event_about_what_is_not_in_the_plan_is_refused(said: Message, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Names(PLAN).check(said)


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
