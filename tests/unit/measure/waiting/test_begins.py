"""By how much later programs began to talk than their lab says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dilaton.lab import loads
from dilaton.measure.waiting.begins import Begun, Key, begun
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan

FLOW, PINGS, SERVER = ("a", "flow"), ("b", "pings"), ("b", "server")


def plan(more: str = "", node: str = "", flow: str = "", after: str = "server") -> Plan:
    """Of a flow that starts when its server is ready, half a second after virtual 0 at the earliest, and pings."""
    return compile_plan(
        loads(
            f"""
name: two
nodes: {{a: {{{node}}}, b: }}
links: [{{endpoints: a -- b, rate: 10Mbit, delay: 5ms}}]
run:
  - {{on: b, name: server, exec: iperf3 -s, ready: {{tcp: 5201}}, background: true}}
  - {{on: a, name: flow, exec: iperf3 -c b, after: {after}, start: 500ms{flow}}}
  - {{on: b, name: pings, exec: ping a, start: 600ms}}
{more}
""",
            "lab.yaml",
        )
    )


TALKED = {FLOW: 0.54, PINGS: 0.65, SERVER: None}
STARTED = {FLOW: 0.51, PINGS: 0.62, SERVER: 0.0}


def found(
    of: Plan,
    talked: Mapping[Key, float | None] = TALKED,
    started: Mapping[Key, float | None] = STARTED,
    server_ready_s: float | None = None,
) -> dict[Key, Begun]:
    """Where the flow has both nodes at its ends, and the pings, whose answers no program gives, their own."""
    return begun(of, talked, started, {"server": server_ready_s}, {FLOW: {"a", "b"}, PINGS: {"b"}, SERVER: {"b"}})


def late(at_s: float, late_s: float, late_s_max: float) -> Begun:
    return Begun(at_s, pytest.approx(late_s), pytest.approx(late_s_max))


def test_a_program_is_late_from_when_the_lab_starts_it() -> None:
    assert set(found(plan())) == {FLOW, PINGS}, "the server talked to nobody"
    assert found(plan())[PINGS] == late(0.65, 0.05, 0.05)


def test_one_that_waits_for_others_is_late_from_then_or_from_when_they_were_there() -> None:
    assert found(plan())[FLOW] == late(0.54, 0.03, 0.04), "nobody knows when that was"
    assert found(plan(), server_ready_s=0.02)[FLOW] == late(0.54, 0.04, 0.04), "in time, as it would be on any machine"
    assert found(plan(), server_ready_s=0.505)[FLOW] == late(0.54, 0.035, 0.04)
    assert found(plan(after="server.end"), server_ready_s=0.02)[FLOW] == late(0.54, 0.03, 0.04), "that was later"


def test_who_is_started_again_or_has_an_end_with_a_share_of_a_cpu_is_late_by_what_nobody_knows() -> None:
    assert set(found(plan(node="cpu: 0.5"))) == {PINGS}
    assert set(found(plan(flow=", restart: on-failure"))) == {PINGS}
    assert set(found(plan(), started=STARTED | {FLOW: None})) == {PINGS}, "it was started more than once"


def test_where_it_is_not_known_of_a_program_at_an_end_nothing_is() -> None:
    assert found(plan(), {FLOW: 0.54, PINGS: 0.65}) == {}, "the server may have begun others"
    assert set(found(plan(), {PINGS: 0.65, SERVER: 0.6})) == {PINGS, SERVER}


def test_where_the_lab_changes_something_meanwhile_nothing_is_known() -> None:
    assert found(plan("changes: [{at: 1s, link: a -- b, delay: 9ms}]")) == {}
