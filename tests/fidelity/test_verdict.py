"""The verdict is right: a chain of links that the machine cannot carry in real time is not valid, dilated it is."""

from __future__ import annotations

import pytest

from tests.conftest import RunLab
from tests.overloaded import chain


@pytest.mark.parametrize("drive", ["wall", "work"])
def test_a_chain_over_capacity_at_tdf_1_is_not_valid(run_lab: RunLab, drive: str) -> None:
    outcome = run_lab(chain("60M" if drive == "wall" else "20M"), "--drive", drive, "--tdf", "1")
    verdict = outcome.record["verdict"]
    assert verdict["level"] != "valid"
    # 18 us against 2.4 us, and no quieter host makes up for a factor of seven. On the work drive no packet is late by that.
    why = {"wall": "a full frame takes 2.42 us", "work": "the patience of"}[drive]
    assert any(why in reason["what"] for reason in verdict["reasons"])
    assert verdict["level"] in outcome.terminal


def test_the_same_chain_with_enough_dilation_is_valid(run_lab: RunLab) -> None:
    # A frame then takes 605 us of the host's time, and a packet is handled in some 50: a host may be five times as slow.
    outcome = run_lab(chain("5M"), "--drive", "work", "--tdf", "250")
    assert outcome.status == 0
    assert outcome.record["verdict"] == {"level": "valid", "reasons": []}


def test_the_same_chain_with_enough_dilation_is_in_time_on_the_wall_drive(run_lab: RunLab) -> None:
    """A host that does much else leaves the guest without its core now and then, and the verdict speaks of that alone."""
    outcome = run_lab(chain("2M"), "--drive", "wall", "--tdf", "100")
    assert outcome.status == 0
    assert all("use the work drive" in reason["advice"] for reason in outcome.record["verdict"]["reasons"])
    # In CPU time, which other load takes nothing of: a tenth, where TDF 1 takes all that there is.
    assert outcome.record["fidelity"]["busy"] < 0.6


def test_seconds_in_which_the_cpu_was_too_slow_spoil_a_run_that_idles_else(run_lab: RunLab) -> None:
    spin = "timeout 2.5 sh -c 'while :; do :; done'"
    head = "name: x\nnodes: {a: }\nrun:\n"
    lab = f'{head}  - {{on: a, exec: "{spin}", expect_exit: 124}}\n  - {{on: a, exec: sleep 6}}\n'
    record = run_lab(lab, "--tdf", "1").record
    assert record["fidelity"]["busy"] < 0.9 < record["fidelity"]["busiest_second"]
    # A stall of the host's may be told beside it.
    (reason,) = (reason for reason in record["verdict"]["reasons"] if "of its busiest second" in reason["what"])
    assert (record["verdict"]["level"], reason["bound"]) == ("suspect", 0.9)


OVERLOAD = """
name: overload
nodes: {a: , b: , c: }
links:
  - {endpoints: a -- b, rate: 60Mbit, delay: 10ms, queue: {limit: 1bdp}}
  - {endpoints: b -- c, rate: 60Mbit, delay: 10ms, queue: {limit: 1bdp}}
run:
  - {on: c, name: server, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: a, name: flood, exec: iperf3 -c c -u -b 57M -l 1400 -t 1 -J, after: server, start: 600ms}
  - {on: b, exec: "timeout 1.2 sh -c 'while :; do :; done'", expect_exit: 124, start: 500ms}
  - {on: a, exec: sleep 5}
"""


def test_an_overload_that_is_shorter_than_two_seconds_is_seen(run_lab: RunLab) -> None:
    """Much less arrives than is sent, no packet is late, and the CPU idles for most of the run."""
    # On a host of four times the speed of ours, too, on which 43 of 57 Mbit/s come at TDF 1, and 54 at TDF 2.
    outcome = run_lab(OVERLOAD, "--tdf", "1/4")
    assert outcome.process("flood")["result"]["throughput"] < 0.9 * 57e6
    assert outcome.record["fidelity"]["busy"] < 0.6
    verdict = outcome.record["verdict"]
    assert verdict["level"] != "valid"
    assert any("the patience of a and c, where the queue of a:eth0" in reason["what"] for reason in verdict["reasons"])


def test_flows_whose_programs_wait_for_the_cpu_are_not_valid_though_no_timer_is_late(run_lab: RunLab) -> None:
    """Links of 800 Mbit/s and queues of 100 packets, in which what a sender sends at once after it waited is lost."""
    limits = (100, "1bdp", 300, 300)
    links = "".join(
        f"  - {{endpoints: n0 -- n{number}, rate: 800Mbit, delay: 5ms, queue: {{limit: {limit}}}}}\n"
        for number, limit in enumerate(limits, 1)
    )
    run = "".join(
        f"  - {{on: {server}, name: s{port}, exec: iperf3 -s -p {port}, ready: {{tcp: {port}}}, background: true}}\n"
        f"  - {{on: {client}, exec: iperf3 -c {server} -p {port} -t 1 -R, name: f{port}, after: s{port}, start: 500ms}}\n"
        for port, server, client in ((5201, "n2", "n0"), (5202, "n3", "n1"), (5203, "n0", "n4"))
    )
    nodes = "{n0: , n1: , n2: , n3: , n4: }"
    outcome = run_lab(f"name: bursts\nnodes: {nodes}\nlinks:\n{links}run:\n{run}", "--tdf", "5")
    (reason,) = (each for each in outcome.record["verdict"]["reasons"] if "waited for the CPU" in each["what"])
    assert "fills in 1.53 ms" in reason["what"]
    assert reason["advice"].startswith("raise tdf to ")


def test_a_fast_access_link_before_a_slow_way_does_not_condemn_a_run(run_lab: RunLab) -> None:
    outcome = run_lab(
        "name: wan\nnodes: {a: , r: {kind: router}, b: }\nlinks:\n"
        "  - {endpoints: a -- r, rate: 10Gbit, delay: 100us}\n"
        "  - {endpoints: r -- b, rate: 10Mbit, delay: 40ms}\nrun:\n"
        "  - {on: b, name: server, exec: iperf3 -s, ready: {tcp: 5201}, background: true}\n"
        "  - {on: a, name: bulk, exec: iperf3 -c b -t 3 -J, after: server}\n"
        "  - {on: a, exec: ping -c 20 -i 0.1 b, after: server}\n",
        "--tdf",
        "5",
    )
    assert outcome.record["verdict"] == {"level": "valid", "reasons": []}
