"""Labs on the event drive over one, two and four machines: results, events, samples and captures are the same bytes.

Each lab has four guests, and something of its own that could come out differently: what happens to links at exact
instants beside TCP with losses, short and long links in a ring, processes that wait for others elsewhere and draw random
numbers beside nodes that crash. No more labs than that, since most of what a run over machines takes is its guests' boots.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.conftest import RunLab
from tests.functional.cluster.placements import assert_same, racks

HEAD = "time: {drive: event}\nguests: per-node\n"

CHAIN = """nodes: {a: {}, b: {kind: router}, c: {kind: router}, d: {}}
links:
  - {endpoints: ["a:eth0", "b:eth0"], rate: 50Mbit, delay: 1ms}
  - {endpoints: ["b:eth1", "c:eth0"], rate: 20Mbit, delay: 20ms LOSS}
  - {endpoints: ["c:eth1", "d:eth0"], rate: 50Mbit, delay: 1ms}
"""

LABS = {
    "tcp with losses over links that change and fail": CHAIN.replace("LOSS", ", loss: 1%")
    + """measure: {capture: ["a:eth0", "b:eth1", "c:eth1", "d:eth0"], interfaces: 20ms, tcp: 50ms}
run:
  - {on: d, name: listen, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: a, exec: ping -c 12 -i 0.05 -W 1 d}
  - {on: a, name: bulk, exec: iperf3 -c d -t 1 -J, after: listen}
changes: [{at: 350ms, link: "b:eth1--c:eth0", delay: 25ms, rate: 5Mbit}]
faults: [{at: 200ms, for: 100ms, link: a--b, down: true}]
""",
    "a ring of short and long links": """nodes: {a: {kind: router}, b: {kind: router}, c: {kind: router}, d: {kind: router}}
links:
  - {endpoints: ["a:eth0", "b:eth0"], rate: 10Mbit, delay: 1ms}
  - {endpoints: ["b:eth1", "c:eth0"], rate: 10Mbit, delay: 20ms}
  - {endpoints: ["c:eth1", "d:eth0"], rate: 10Mbit, delay: 2ms}
  - {endpoints: ["d:eth1", "a:eth1"], rate: 10Mbit, delay: {mean: 7ms, jitter: 1ms}}
measure: {capture: ["b:eth0", "d:eth1"]}
run:
  - {on: c, name: listen, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: a, name: flow, exec: iperf3 -u -b 5M -c c -t 1 -J, after: listen}
  - {on: b, name: ping, exec: ping -c 20 -i 0.03 d}
""",
    "processes that wait for others elsewhere beside nodes that crash": CHAIN.replace("LOSS", "")
    + """placement: {a: 0, d: 1}
measure: {capture: ["c:eth0"], outputs: true, nodes: 50ms}
run:
  - {on: c, name: drawn, exec: cat /proc/sys/kernel/random/uuid}
  - {on: a, name: first, exec: sh -c 'echo begins; sleep 0.1; echo ends'}
  - {on: d, name: second, exec: sh -c 'cat /proc/uptime; date +%N; sleep 0.05', after: first}
  - {on: b, name: third, exec: sh -c 'cat /proc/sys/kernel/random/uuid', after: second}
  - {on: c, name: fails, exec: sh -c 'sleep 0.03; exit 1', restart: {when: on-failure, delay: 20ms}, background: true}
  - {on: d, name: serve, exec: python3 -u -m http.server 80, ready: {tcp: 80}, background: true}
  - on: a
    name: fetch
    exec: sh -c 'for i in 1 2 3 4; do curl -sS -m 0.2 -o /dev/null -w "%{time_total} " d; sleep 0.2; done'
    after: serve
    expect_exit: any
faults: [{at: 300ms, for: 300ms, crash: d}]
""",
}


@pytest.mark.parametrize("text", LABS.values(), ids=LABS)
def test_a_lab_gives_the_same_bytes_on_one_two_and_four_machines(run_lab_once: RunLab, text: str) -> None:
    assert_same_over(run_lab_once, f"name: same\n{HEAD}{text}", ("2", "4"))


def test_racks_give_the_same_bytes_on_one_four_and_eight_machines(run_lab_once: RunLab) -> None:
    # All forty hosts by ./dev placements.
    assert_same_over(run_lab_once, racks(hosts=1), ("4", "8"))


def assert_same_over(run_lab_once: RunLab, lab: str, over: Sequence[str]) -> None:
    alone = run_lab_once(lab)
    for machines in over:
        assert_same(run_lab_once(lab, "--machines", machines), alone)
