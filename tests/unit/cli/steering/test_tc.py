"""What `dilaton link` prints of a direction is what one would type."""

from __future__ import annotations

from dilaton.cli.steering.tc import tc_lines
from dilaton.plan.links.queues import Codel, DropEvery, Egress, Hfsc, Netem, RandomLoss


def test_a_chain_is_written_from_the_root_down_and_a_shaper_with_its_class() -> None:
    wire = Netem(
        delay_ns=10_500_000,
        jitter_ns=1_000,
        table="normal",
        loss=RandomLoss(probability=0.05, correlation=0.25),
        limit_packets=1000,
    )
    queue = Codel(limit_packets=50, target_ns=5_000_000, interval_ns=100_000_000, ecn=True)
    assert tc_lines("eth0", Egress(qdiscs=[wire, Hfsc(rate_bit_per_s=10**7), queue])) == [
        "tc qdisc add dev eth0 root handle 1: netem limit 1000 delay 10500us 1us distribution normal loss random 5% 25%",
        "tc qdisc add dev eth0 parent 1:1 handle 2: hfsc default 1",
        "tc class add dev eth0 parent 2: classid 2:1 hfsc ls rate 10000000bit ul rate 10000000bit",
        "tc qdisc add dev eth0 parent 2:1 handle 3: codel limit 50 target 5000us interval 100000us ecn",
    ]


def test_what_tc_cannot_say_is_a_comment() -> None:
    assert tc_lines("eth0", Egress(drops=DropEvery(period=100))) == ["# program: drops every 100th packet"]
