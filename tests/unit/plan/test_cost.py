"""What a run costs of the host's time is known before it, within a factor of two of what such runs were seen to take."""

from __future__ import annotations

import pytest

from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.forecast.cost import Cost, estimate

LAB = """
name: cost
time: {tdf: TDF}
nodes: {a: , r: {kind: router}, b: }
links: [{endpoints: [a, r], rate: 1Gbit}, {endpoints: [r, b], rate: 10Mbit, delay: 10ms, loss: LOSS}]
run:
  - {on: b, name: server, exec: iperf3 -s, background: true}
  - {on: a, name: bulk, exec: iperf3 -c b WORDS}
"""


def cost(words: str = "-t 10", tdf: str = "10", loss: str = "0%", more: str = "") -> Cost:
    text = LAB.replace("WORDS", words).replace("TDF", tdf).replace("LOSS", loss) + more
    lab = loads(text, "lab.yaml")
    found = estimate(lab, compile_plan(lab), 2)
    assert found is not None
    return found


def packets(words: str, **others: str) -> float:
    return cost(words, **others).parts[0].packets


FULL = 10e6 * 10 / (1514 * 8)
"""Packets of ten seconds at the bottleneck."""


@pytest.mark.parametrize(
    ("words", "share"),
    [
        ("-t 10", 1),
        ("--time=20 -R", 2),
        ("-t 5 -O 5", 1),
        ("-b 5M", 0.5),
        ("-u -b 2M -P 3 -t 10", 0.6),
        ("-u", 0.1),
        ("-n 1M", 2**20 * 8 / 1e8),
    ],
)
def test_packets_are_those_that_a_program_is_asked_to_send_at_the_rate_of_the_slowest_link(
    words: str, share: float
) -> None:
    assert packets(words) == pytest.approx(FULL * share, rel=0.01)


def test_the_busiest_link_is_the_one_that_most_packets_pass_in_whatever_direction() -> None:
    # Both links have the packets of the flow, and the first that has most of them is told.
    assert cost().busiest == "a:eth0" and cost("-t 10 -R").busiest == "b:eth0"
    aside = "  - {on: r, name: second, exec: iperf3 -c b -t 10}\n"
    assert cost(more=aside).busiest == "r:eth1"


def test_flows_share_a_link_only_while_they_go_at_once() -> None:
    beside = "  - {on: a, name: second, exec: iperf3 -c b -t 10}\n"
    assert [part.packets for part in cost(more=beside).parts] == pytest.approx([FULL / 2] * 2)
    later = beside.replace("-t 10", "-t 10, after: bulk")
    assert [part.packets for part in cost(more=later).parts] == pytest.approx([FULL] * 2)
    assert cost(more=later).end_s == 20


def test_losses_slow_a_connection_of_tcp_but_no_datagrams() -> None:
    # 1.22 segments of 1514 bytes per round trip of 20 ms and square root of 4 %: 3.7 Mbit/s.
    assert packets("-t 10", loss="4%") == pytest.approx(FULL * 0.37, rel=0.01)
    assert packets("-u -b 10M", loss="4%") == pytest.approx(FULL)


def test_more_links_cost_more_and_a_busy_guest_no_more_than_its_tdf() -> None:
    part = cost().parts[0]
    assert part.core_s == pytest.approx(FULL * (80e-6 + 2 * 50e-6))
    slow = LAB.replace("rate: 10Mbit", "rate: 10Gbit").replace("1Gbit", "10Gbit")
    lab = loads(slow.replace("WORDS", "-t 2").replace("TDF", "1").replace("LOSS", "0%"), "lab.yaml")
    found = estimate(lab, compile_plan(lab), 2)
    assert found is not None and found.is_bound and found.host_s < 4
    assert "a/bulk sends at 1.7Gbit over 2 links for 2 s and keeps the CPU busy" in found.hint


def test_nothing_is_said_of_a_lab_whose_programs_are_not_known() -> None:
    lab = loads("{name: x, nodes: {a: }, run: [{on: a, exec: sleep 5}]}", "lab.yaml")
    assert estimate(lab, compile_plan(lab), 2) is None
