"""The queue disciplines of a link do what a queue in front of a wire does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.lab import Lab
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.links import LIMIT_MAX
from dilaton.plan.model import Netem

Packet = tuple[int, int]
"""Arrival (ns) and size (bytes)."""


def both(**fields: Any) -> list[list[Netem]]:
    """The queue disciplines from a to b and from b to a."""
    link = {"endpoints": "a -- b", **fields}
    lab = Lab.model_validate({"name": "x", "nodes": {"a": {}, "b": {}}, "links": [link]})
    return [node.interfaces[0].qdiscs for node in compile_plan(lab).nodes]


def one(**fields: Any) -> list[Netem]:
    a_to_b, b_to_a = both(**fields)
    assert a_to_b == b_to_a
    return a_to_b


def test_a_link_that_does_nothing_has_no_discipline() -> None:
    assert one() == []
    assert one(queue={"limit": "5"}) == []


def test_a_rate_alone_is_one_discipline_with_the_limit_of_the_queue() -> None:
    assert one(rate="1Gbit") == [Netem(rate_bit_per_s=10**9, limit_packets=1000)]
    assert one(rate="1Gbit", queue={"limit": "7"}) == [Netem(rate_bit_per_s=10**9, limit_packets=7)]


@pytest.mark.parametrize("fields", [{"delay": "5ms"}, {"loss": "1%"}, {"delay": "5ms", "loss": "1%"}])
def test_without_a_rate_there_is_one_discipline_and_no_rate(fields: dict[str, str]) -> None:
    [netem] = one(**fields)
    assert netem.rate_bit_per_s is None
    assert netem.delay_ns == (5 * 10**6 if "delay" in fields else 0)
    assert netem.loss == (0.01 if "loss" in fields else 0)


def test_delay_and_loss_are_outside_and_rate_and_queue_inside() -> None:
    outer, inner = one(rate="10Mbit", delay="20ms", loss="1%", queue={"limit": "50"})
    assert (outer.delay_ns, outer.loss, outer.rate_bit_per_s) == (20 * 10**6, 0.01, None)
    assert inner == Netem(rate_bit_per_s=10**7, limit_packets=50)


def test_directions_may_differ() -> None:
    a_to_b, b_to_a = both(rate="10Mbit", b_to_a={"rate": "1Mbit"}, a_to_b={"delay": "1ms"})
    assert [netem.rate_bit_per_s for netem in a_to_b] == [None, 10**7]
    assert [netem.rate_bit_per_s for netem in b_to_a] == [10**6]


@pytest.mark.parametrize(
    ("fields", "packets"),
    [
        ({"limit": "15140B"}, 10),
        ({"limit": "15139B"}, 9),
        ({"limit": "1B"}, 1),
        # 10 Mbit/s times 40 ms there and back are 50,000 bytes, 33.02 frames of 1514.
        ({"limit": "1bdp"}, 33),
        ({"limit": "2bdp"}, 66),
        ({"limit": "0.01bdp"}, 1),
        ({"limit": "1000TB"}, LIMIT_MAX),
    ],
)
def test_bytes_and_bandwidth_delay_products_become_full_frames(fields: dict[str, str], packets: int) -> None:
    assert one(rate="10Mbit", delay="20ms", queue=fields)[1].limit_packets == packets


def test_a_bandwidth_delay_product_is_reckoned_with_both_delays_and_the_own_rate() -> None:
    queue = {"limit": "1bdp"}
    a_to_b, b_to_a = both(rate="10Mbit", delay="10ms", b_to_a={"delay": "30ms", "rate": "100Mbit"}, queue=queue)
    assert (a_to_b[1].limit_packets, b_to_a[1].limit_packets) == (33, 330)


def test_the_limit_in_frames_follows_the_mtu() -> None:
    assert one(rate="10Mbit", mtu="9000", queue={"limit": "90140B"})[0].limit_packets == 10


@pytest.mark.parametrize("rate", ["1kbit", "10Mbit", "100Gbit", "1Tbit"])
def test_the_outer_limit_holds_the_wire_filled_with_the_smallest_frames_and_the_queue(rate: str) -> None:
    outer, inner = one(rate=rate, delay="20ms", queue={"limit": "50"})
    assert outer.limit_packets >= inner.rate_bit_per_s * 0.020 / (64 * 8) + 50  # type: ignore[operator]


def test_no_limit_exceeds_what_the_kernel_can_keep() -> None:
    assert one(rate="10Tbit", delay="24h")[0].limit_packets == LIMIT_MAX


def through(chain: list[Netem], packets: list[Packet]) -> dict[int, Fraction]:
    """When each packet leaves a chain of netem, by its number; those dropped are missing."""
    alive = {number: Fraction(arrival) for number, (arrival, _) in enumerate(packets)}
    for netem in chain:
        leaving: dict[int, Fraction] = {}
        for number, arrival in alive.items():
            held = [end for end in leaving.values() if end > arrival]
            if len(held) >= netem.limit_packets:
                continue
            start = max([arrival, *held]) if netem.rate_bit_per_s else arrival
            sending = Fraction(packets[number][1] * 8 * 10**9, netem.rate_bit_per_s or 1) if netem.rate_bit_per_s else 0
            leaving[number] = start + sending + netem.delay_ns
        alive = leaving
    return alive


arrivals = st.lists(st.tuples(st.integers(0, 10**7), st.integers(64, 1514)), max_size=30).map(sorted)


@given(packets=arrivals, limit=st.integers(1, 5), delay_us=st.integers(1, 20_000))
def test_delay_before_the_queue_drops_and_delivers_as_delay_behind_it(
    packets: list[Packet], limit: int, delay_us: int
) -> None:
    chain = one(rate="10Mbit", delay=f"{delay_us}us", queue={"limit": str(limit)})
    queue_only = one(rate="10Mbit", queue={"limit": str(limit)})
    expected = {number: end + delay_us * 1000 for number, end in through(queue_only, packets).items()}
    assert through(chain, packets) == expected
