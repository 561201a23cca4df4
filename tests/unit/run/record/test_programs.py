"""What the programs of a run say about its fidelity."""

from __future__ import annotations

from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.run.record.model import BeginRecord, ContentionRecord, GuestFidelity, LatenessRecord, ProcessRecord
from dilaton.run.record.programs import lives_of

BEGINS = """
name: three
nodes: {a: , b: , c: }
links: [{endpoints: a -- b, delay: 5ms}, {endpoints: b -- c, delay: 5ms}]
run:
  - {on: a, name: pings, exec: ping b}
  - {on: b, name: server, exec: iperf3 -s, background: true}
  - {on: c, name: script, exec: sh}
"""


def test_when_a_program_began_to_talk_is_known_where_it_is_of_all_on_the_nodes_that_talk() -> None:
    planned = compile_plan(loads(BEGINS, "lab.yaml"))
    processes = [
        ProcessRecord(name=each.name, node=each.node, argv=[], start_s=0, end_s=1, exit=0) for each in planned.processes
    ]

    def began(*told: tuple[int, float | None]) -> float | None:
        begins = [BeginRecord(process=process, at_s=at_s) for process, at_s in told]
        found = ContentionRecord(ns_counts=[], ns_totals=[], interrupts=[], longest_ns=0, begins=begins)
        guest = GuestFidelity(
            lateness_us=LatenessRecord(p50=0, p99=0, p999=0, max=0), timers=0, reads=0, contention=found
        )
        pings = lives_of(planned, processes, [guest])[0].begun
        return pings and pings.at_s

    assert began((0, 0.25), (1, None)) == 0.25, "whatever becomes of a script on a third node"
    assert began((0, 0.25), (2, 0.5)) is None, "the server may have begun others"
    assert began((0, 0.25), (1, None), (0, 0.5)) is None, "it was started again"
    assert began((0, None), (1, 0.5)) is None, "it talked to nobody"
