"""Clocks of guests that run apart: what programs see is by their own clock, what Dilaton tells is in virtual time."""

from __future__ import annotations

import dilaton
from tests.conftest import RunLab

LAB = """
name: apart
time: {drive: wall, tdf: 5, clocks: apart}
nodes: {slow: {guest: x}, plain: {guest: y}}
guests: {x: {tdf: 10}}
links: [{endpoints: [slow, plain], rate: 10Mbit, delay: 20ms}]
measure: {capture: [{interface: "plain:eth0", filter: icmp}]}
run:
  - {on: slow, exec: sleep 0.3, name: sleep-slow}
  - {on: plain, exec: sleep 0.3, name: sleep-plain}
  - {on: slow, exec: ping -c 3 -i 0.1 plain, name: ping-slow, start: 100ms}
  - {on: plain, exec: ping -c 3 -i 0.1 slow, name: ping-plain, start: 100ms}
"""

BUSY = """
name: busy
time: {drive: wall, tdf: 2, clocks: apart}
nodes: {busy: {guest: x}}
guests: {x: {tdf: 4}}
measure: {nodes: 200ms}
run: [{on: busy, exec: "sh -c 'while :; do :; done'", name: spin, stop: 2s}]
"""


def test_a_guest_of_twice_the_tdf_sees_half_the_time_pass_and_frames_keep_their_instants(run_lab: RunLab) -> None:
    outcome = run_lab(LAB)
    assert outcome.status == 0
    rates = {guest["name"]: guest["clock_rate"] for guest in outcome.record["guests"]}
    assert rates == {"x": 0.5, "y": 1}
    for name, virtual_s in (("sleep-slow", 0.6), ("sleep-plain", 0.3)):
        process = outcome.process(name)
        # Programs start and end on a CPU of the host: milliseconds of its time, more beside other load.
        assert virtual_s <= process["end_s"] - process["start_s"] <= 1.8 * virtual_s
    # Never early; and late by less than would hide the rate.
    for name, rtt_s in (("ping-slow", 0.02), ("ping-plain", 0.04)):
        found = outcome.process(name)["result"]
        assert found["received"] == 3
        assert rtt_s <= found["rtt"]["min"] <= 1.8 * rtt_s
    # The run would have failed if a frame had come before or after its instant of virtual time.
    assert outcome.record["guests"][0]["waits"]["frames_sent"] >= 6


def test_a_node_that_takes_all_of_a_cpu_has_a_share_of_1_by_whatever_clock(run_lab: RunLab) -> None:
    shares = dilaton.load(run_lab(BUSY).path).nodes.cpu_share
    # By the guest's own clock it would be a half; the kernel counts in ticks, of which such a share has ten. The median: a
    # sample that the host delays has more than its period, and the next one less.
    assert 0.8 <= shares.median() <= 1.2
