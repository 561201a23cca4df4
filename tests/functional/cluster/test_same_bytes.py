"""Five labs on the event drive over one, two and four machines: results, events, samples and captures are the same bytes.

Each lab has four guests, and something of its own that could come out differently: what happens to links at exact
instants, TCP with losses, short and long links in a ring, processes that wait for others elsewhere and draw random
numbers, nodes that crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import Outcome, RunLab

HEAD = "time: {drive: event}\nguests: per-node\n"

CHAIN = """nodes: {a: {}, b: {kind: router}, c: {kind: router}, d: {}}
links:
  - {endpoints: ["a:eth0", "b:eth0"], rate: 50Mbit, delay: 1ms}
  - {endpoints: ["b:eth1", "c:eth0"], rate: 20Mbit, delay: 20ms LOSS}
  - {endpoints: ["c:eth1", "d:eth0"], rate: 50Mbit, delay: 1ms}
"""

LABS = {
    "links that change and fail": CHAIN.replace("LOSS", "")
    + """measure: {capture: ["b:eth1", "d:eth0"], interfaces: 20ms}
run: [{on: a, exec: ping -c 12 -i 0.05 -W 1 d}]
changes: [{at: 350ms, link: "b:eth1--c:eth0", delay: 25ms, rate: 5Mbit}]
faults: [{at: 200ms, for: 100ms, link: a--b, down: true}]
""",
    "tcp with losses": CHAIN.replace("LOSS", ", loss: 1%")
    + """measure: {capture: ["a:eth0", "c:eth1"], tcp: 50ms}
run:
  - {on: d, name: listen, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: a, name: bulk, exec: iperf3 -c d -t 1 -J, after: listen}
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
    "processes that wait for others elsewhere": CHAIN.replace("LOSS", "")
    + """measure: {outputs: true, nodes: 50ms}
run:
  - {on: c, name: drawn, exec: cat /proc/sys/kernel/random/uuid}
  - {on: a, name: first, exec: sh -c 'echo begins; sleep 0.1; echo ends'}
  - {on: d, name: second, exec: sh -c 'cat /proc/uptime; date +%N; sleep 0.05', after: first}
  - {on: b, name: third, exec: sh -c 'cat /proc/sys/kernel/random/uuid', after: second}
  - {on: c, name: fails, exec: sh -c 'sleep 0.03; exit 1', restart: {when: on-failure, delay: 20ms}, background: true}
""",
    "nodes that crash": CHAIN.replace("LOSS", "")
    + """placement: {a: 0, d: 1}
measure: {capture: ["c:eth0"]}
run:
  - {on: d, name: serve, exec: python3 -u -m http.server 80, ready: {tcp: 80}, background: true}
  - on: a
    name: fetch
    exec: sh -c 'for i in 1 2 3 4; do curl -sS -m 0.2 -o /dev/null -w "%{time_total} " d; sleep 0.2; done'
    after: serve
    expect_exit: any
faults: [{at: 300ms, for: 300ms, crash: d}]
""",
}


def of_run(path: Path) -> dict[str, bytes]:
    """What has to be the same: all that nodes wrote, samples and captures."""
    kept = [file for part in ("nodes", "captures", "measure") for file in sorted((path / part).rglob("*"))]
    return {str(file.relative_to(path)): file.read_bytes() for file in kept if file.is_file()}


def happened(outcome: Outcome) -> list[dict[str, object]]:
    return [{name: value for name, value in event.items() if name != "host_s"} for event in outcome.events]


@pytest.mark.parametrize("text", LABS.values(), ids=LABS)
def test_a_lab_gives_the_same_bytes_on_one_two_and_four_machines(run_lab_once: RunLab, text: str) -> None:
    assert_same_over(run_lab_once, f"name: same\n{HEAD}{text}", ("2", "4"))


def test_racks_give_the_same_bytes_on_one_four_and_eight_machines(run_lab_once: RunLab) -> None:
    # DieCast (NSDI 2008) has its 40 nodes ten to a machine, and five: here eight to one, two and one.
    assert_same_over(run_lab_once, racks(hosts=1), ("4", "8"))


def racks(hosts: int) -> str:
    """Eight racks of so many hosts, a guest each, around a router; all hosts of the first fetch from the last ones."""
    nodes, links, runs = ["core: {kind: router, guest: r0}"], [], []
    for rack in range(8):
        nodes.append(f"s{rack}: {{kind: router, guest: r{rack}}}")
        links.append(f'{{endpoints: ["s{rack}:up", "core:d{rack}"], rate: 50Mbit, delay: 5ms}}')
        for host in range(hosts):
            nodes.append(f"h{rack}x{host}: {{guest: r{rack}}}")
            links.append(f'{{endpoints: ["h{rack}x{host}:eth0", "s{rack}:d{host}"], rate: 10Mbit, delay: 1ms}}')
    for rack, host in ((rack, host) for rack in range(4) for host in range(hosts)):
        there = f"h{7 - rack}x{host}"
        runs.append(f"{{on: {there}, name: l{rack}x{host}, exec: iperf3 -s, ready: {{tcp: 5201}}, background: true}}")
        runs.append(
            f"{{on: h{rack}x{host}, name: f{rack}x{host}, exec: iperf3 -c {there} -n 500K -J, after: l{rack}x{host}}}"
        )
    body = "".join(f"  {node}\n" for node in nodes)
    listed = {name: "".join(f"  - {each}\n" for each in of) for name, of in (("links", links), ("run", runs))}
    return (
        f"name: racks\ntime: {{drive: event}}\nguests: {{}}\nnodes:\n{body}links:\n{listed['links']}"
        f'measure: {{capture: ["core:d0", "core:d7"]}}\nrun:\n{listed["run"]}'
    )


def assert_same_over(run_lab_once: RunLab, lab: str, over: Sequence[str]) -> None:
    alone = run_lab_once(lab)
    assert alone.status == 0
    ours = of_run(alone.path)
    assert any(ours.values())
    for machines in over:
        outcome = run_lab_once(lab, "--machines", machines)
        assert outcome.status == 0
        assert happened(outcome) == happened(alone)
        theirs = of_run(outcome.path)
        assert [name for name in ours | theirs if ours.get(name) != theirs.get(name)] == []
        for part in ("processes", "checks", "verdict"):
            assert outcome.record[part] == alone.record[part]
