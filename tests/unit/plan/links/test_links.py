"""The queue disciplines of a link do what a queue in front of a wire does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.lab import Lab
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.links.disciplines import LIMIT_MAX
from dilaton.plan.links.queues import (
    ORPHANING_RATE_BIT_PER_S,
    Bfifo,
    Codel,
    DropEvery,
    DropPackets,
    DropRandom,
    Egress,
    GilbertElliottLoss,
    Hfsc,
    Htb,
    Netem,
    Pfifo,
    Qdisc,
    RandomLoss,
    StateLoss,
    Tbf,
)
from dilaton.plan.model import Plan
from tests.course import ends, instant

Packet = tuple[int, int]
"""Arrival (ns) and size (bytes)."""


def plan(changes: list[dict[str, Any]], **fields: Any) -> Plan:
    """The plan of one link from a to b."""
    link = {"endpoints": "a -- b", **fields}
    lab = {"name": "x", "nodes": {"a": {}, "b": {}}, "links": [link], "changes": changes}
    return compile_plan(Lab.model_validate(lab))


def egress(**fields: Any) -> Egress:
    """What the interface of a does to packets."""
    return plan([], **fields).nodes[0].interfaces[0].egress


def both(**fields: Any) -> list[list[Qdisc]]:
    """The queue disciplines from a to b and from b to a."""
    return [node.interfaces[0].egress.qdiscs for node in plan([], **fields).nodes]


def one(**fields: Any) -> list[Qdisc]:
    """Those of both directions, which are the same but for the seeds of their random numbers, which are left out."""
    a_to_b, b_to_a = (list(map(unseeded, qdiscs)) for qdiscs in both(**fields))
    assert a_to_b == b_to_a
    return a_to_b


def unseeded(qdisc: Qdisc) -> Qdisc:
    return qdisc.model_copy(update={"seed": None}) if isinstance(qdisc, Netem) else qdisc


def seeds(lab_seed: int, **fields: Any) -> list[int | None]:
    """Of the first disciplines of two links, direction by direction."""
    links = [{"endpoints": "a -- b", **fields}] * 2
    lab = {"name": "x", "nodes": {"a": {}, "b": {}}, "links": links, "seed": str(lab_seed)}
    found = [
        interface.egress.qdiscs[0]
        for node in compile_plan(Lab.model_validate(lab)).nodes
        for interface in node.interfaces
    ]
    return [qdisc.seed for qdisc in found if isinstance(qdisc, Netem)]


def netems(**fields: Any) -> list[Netem]:
    found = one(**fields)
    assert all(isinstance(qdisc, Netem) for qdisc in found)
    return [qdisc for qdisc in found if isinstance(qdisc, Netem)]


def kinds(**fields: Any) -> list[str]:
    return [qdisc.kind for qdisc in one(**fields)]


def test_a_link_that_does_nothing_has_no_discipline() -> None:
    assert one() == []


HIDING = Netem(rate_bit_per_s=ORPHANING_RATE_BIT_PER_S, limit_packets=1000)
"""The netem that only hides a queue from its sender."""


def test_a_queue_is_hidden_from_its_sender_and_holds_the_packet_being_sent_too() -> None:
    assert one(rate="1Gbit") == [HIDING, Netem(rate_bit_per_s=10**9, limit_packets=1001)]
    assert one(rate="1Gbit", queue={"limit": "7"}) == [HIDING, Netem(rate_bit_per_s=10**9, limit_packets=8)]
    assert one(rate="10Mbit", queue={"discipline": "codel"})[0] == HIDING


@pytest.mark.parametrize("fields", [{"delay": "5ms"}, {"loss": "1%"}, {"delay": "5ms", "loss": "1%"}])
def test_without_a_rate_there_is_one_discipline_and_no_rate(fields: dict[str, str]) -> None:
    [netem] = netems(**fields)
    assert netem.rate_bit_per_s is None
    assert netem.delay_ns == (5 * 10**6 if "delay" in fields else 0)
    assert netem.loss == (RandomLoss(probability=0.01) if "loss" in fields else None)


def test_delay_and_loss_are_outside_and_rate_and_queue_inside() -> None:
    outer, inner = netems(rate="10Mbit", delay="20ms", loss="1%", queue={"limit": "50"})
    assert (outer.delay_ns, outer.loss, outer.rate_bit_per_s) == (20 * 10**6, RandomLoss(probability=0.01), None)
    assert inner == Netem(rate_bit_per_s=10**7, limit_packets=51)


def test_directions_may_differ() -> None:
    a_to_b, b_to_a = both(rate="10Mbit", b_to_a={"rate": "1Mbit"}, a_to_b={"delay": "1ms"})
    assert [netem.rate_bit_per_s for netem in a_to_b] == [None, 10**7]  # type: ignore[union-attr]
    assert [netem.rate_bit_per_s for netem in b_to_a] == [ORPHANING_RATE_BIT_PER_S, 10**6]  # type: ignore[union-attr]


def test_a_direction_keeps_what_it_does_not_name() -> None:
    delay = {"mean": "10ms", "jitter": "1ms", "distribution": "normal"}
    a_to_b, b_to_a = both(delay=delay, b_to_a={"delay": {"jitter": "2ms"}})
    assert [(netem.delay_ns, netem.jitter_ns, netem.table) for [netem] in (a_to_b, b_to_a)] == [  # type: ignore[union-attr]
        (10**7, 10**6, "normal"),
        (10**7, 2 * 10**6, "normal"),
    ]


def test_the_text_of_netem_means_what_the_fields_mean_and_fields_count_before_it() -> None:
    text = "delay 10ms 2ms 25% distribution normal loss gemodel 1% 10% duplicate 1% corrupt 0.1% reorder 2% 50% gap 5"
    fields = {
        "delay": {"mean": "10ms", "jitter": "2ms", "correlation": "25%", "distribution": "normal"},
        "loss": {"gemodel": {"p": "1%", "r": "10%"}},
        "duplicate": "1%",
        "corrupt": {"probability": "0.1%"},
        "reorder": {"probability": "2%", "correlation": "50%", "gap": "5"},
    }
    assert one(netem=text) == one(**fields)
    [netem] = netems(netem=text, loss={"every": "3"})
    assert (netem.loss, netem.reorder, netem.gap) == (None, 0.02, 5)


def test_the_text_of_netem_may_spell_times_as_tc_does() -> None:
    assert one(netem="delay 10msec 500usecs") == one(netem="delay 10ms 500us")
    assert one(netem="delay 2secs") == one(delay="2s")


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ({"random": "1%", "correlation": "25%"}, RandomLoss(probability=0.01, correlation=0.25)),
        ({"gemodel": {"p": "1%"}}, GilbertElliottLoss(p=0.01, r=0.99, loss_bad=1, loss_good=0)),
        (
            {"gemodel": {"p": "1%", "r": "10%", "1-h": "90%", "1-k": "2%"}},
            GilbertElliottLoss(p=0.01, r=0.1, loss_bad=0.9, loss_good=0.02),
        ),
        ({"state": {"p13": "2%"}}, StateLoss(p13=0.02, p31=0.98, p32=0, p23=1, p14=0)),
    ],
)
def test_models_of_loss_have_the_defaults_of_tc(loss: dict[str, Any], expected: object) -> None:
    assert netems(loss=loss)[0].loss == expected


@pytest.mark.parametrize(
    "drawn",
    [
        {"loss": "1%"},
        {"delay": {"mean": "10ms", "jitter": "1ms"}},
        {"duplicate": "1%"},
        {"corrupt": "1%"},
        {"delay": "1ms", "reorder": "1%"},
    ],
)
def test_each_direction_draws_from_a_stream_of_its_own_that_the_lab_s_seed_begins(drawn: dict[str, Any]) -> None:
    assert len({*seeds(1, **drawn), *seeds(2, **drawn)} - {None}) == 8
    assert seeds(1, **drawn) == seeds(1, **drawn)


def test_what_draws_nothing_has_no_seed() -> None:
    assert seeds(1, delay="10ms", loss={"random": "1%", "seed": "7"}) == [None] * 4


def test_losses_of_certain_packets_are_no_matter_of_netem() -> None:
    assert egress(loss={"every": "100"}) == Egress(drops=DropEvery(period=100))
    assert egress(loss={"packets": ["42", "17"]}) == Egress(drops=DropPackets(numbers=[17, 42]))


@pytest.mark.parametrize(
    ("limit", "packets"),
    [
        # 10 Mbit/s times 40 ms there and back are 50,000 bytes, 33.02 frames of 1514.
        ("1bdp", 33),
        ("2bdp", 66),
        ("0.01bdp", 1),
        ("40ms", 33),
    ],
)
def test_times_and_bandwidth_delay_products_become_full_frames(limit: str, packets: int) -> None:
    assert netems(rate="10Mbit", delay="20ms", queue={"limit": limit})[1].limit_packets == packets + 1


def test_a_bandwidth_delay_product_is_reckoned_with_both_delays_and_the_own_rate() -> None:
    queue = {"limit": "1bdp"}
    a_to_b, b_to_a = both(rate="10Mbit", delay="10ms", b_to_a={"delay": "30ms", "rate": "100Mbit"}, queue=queue)
    assert (a_to_b[1].limit_packets, b_to_a[1].limit_packets) == (34, 331)  # type: ignore[union-attr]


def test_a_limit_in_bytes_is_kept_in_bytes_below_a_shaper() -> None:
    wire, shaper, queue = one(rate="10Mbit", delay="1ms", queue={"limit": "16KB"})
    assert (wire.kind, shaper, queue) == ("netem", Hfsc(rate_bit_per_s=10**7), Bfifo(limit_bytes=16000))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"queue": {"discipline": "codel"}}, ["netem", "hfsc", "codel"]),
        ({"queue": {"discipline": "fq_codel"}}, ["netem", "hfsc", "fq_codel"]),
        ({"queue": {"discipline": "pie"}}, ["netem", "hfsc", "pie"]),
        ({"queue": {"discipline": "red"}}, ["netem", "hfsc", "red"]),
        ({"queue": {"discipline": "sfq"}}, ["netem", "hfsc", "sfq"]),
        ({"queue": {"discipline": "fq"}}, ["netem", "hfsc", "fq"]),
        ({"queue": {"discipline": "cake"}}, ["netem", "cake"]),
        ({"queue": {"discipline": "tbf", "burst": "32KB"}}, ["netem", "tbf", "pfifo"]),
        ({"queue": {"discipline": "htb", "limit": "32KB"}}, ["netem", "htb", "bfifo"]),
        # The kernel lets no other netem beside one that duplicates.
        ({"duplicate": "1%"}, ["netem", "hfsc", "pfifo"]),
    ],
)
def test_each_discipline_has_its_chain(fields: dict[str, Any], expected: list[str]) -> None:
    assert kinds(rate="10Mbit", **fields) == expected


def test_codel_has_the_defaults_of_its_rfc_and_what_is_written() -> None:
    queue = {"discipline": "codel", "target": "2ms", "ecn": "true"}
    codel = one(rate="10Mbit", queue=queue)[-1]
    assert codel == Codel(limit_packets=1000, target_ns=2_000_000, interval_ns=100_000_000, ecn=True)


def test_a_token_bucket_has_the_burst_that_is_asked_for_and_never_less_than_a_frame() -> None:
    queue = {"discipline": "tbf", "limit": "10"}
    assert one(rate="10Mbit", queue=queue | {"burst": "32KB"})[1:] == [
        Tbf(rate_bit_per_s=10**7, burst_bytes=32000),
        Pfifo(limit_packets=10),
    ]
    assert one(rate="10Mbit", queue=queue)[1] == Tbf(rate_bit_per_s=10**7, burst_bytes=1514)


def test_beyond_what_hfsc_can_reckon_the_shaper_is_htb_with_a_small_burst() -> None:
    queue = {"limit": "1MB"}
    assert one(rate="10Gbit", queue=queue)[1] == Hfsc(rate_bit_per_s=10**10)
    assert one(rate="100Gbit", queue=queue)[1] == Htb(rate_bit_per_s=10**11, burst_bytes=250_000)


def test_a_trace_has_a_queue_that_keeps_departure_times_and_its_own_limit(tmp_path: Any) -> None:
    path = tmp_path / "lte.up"
    path.write_text("1\n1\n3\n")
    found = plan([], trace={"file": str(path)}, delay="5ms", queue={"limit": "20"})
    interface = found.nodes[0].interfaces[0].egress
    assert [qdisc.kind for qdisc in interface.qdiscs] == ["netem", "fq"]
    assert interface.delivery is not None
    assert (interface.delivery.delay_ns, interface.delivery.limit_packets) == (5_000_000, 20)
    assert found.traces == {str(path): [1, 1, 3]}


def test_changes_become_complete_states_of_the_ends_that_change_in_one_shape() -> None:
    found = plan(
        [{"at": "2s", "link": "a -- b", "loss": "5%"}, {"at": "1s", "link": "b -- a", "a_to_b": {"delay": "9ms"}}],
        rate="10Mbit",
        delay={"mean": "5ms", "jitter": "1ms"},
    )
    assert [(instant(change), [end.node for end in ends(change)]) for change in found.course] == [
        (10**9, ["a"]),
        (2 * 10**9, ["a", "b"]),
    ]
    wires = [ends(change)[0].egress.qdiscs[0] for change in found.course]
    assert [(wire.delay_ns, wire.jitter_ns, wire.loss) for wire in wires if isinstance(wire, Netem)] == [
        (9_000_000, 10**6, None),
        (9_000_000, 10**6, RandomLoss(probability=0.05)),
    ]


def test_a_rate_that_changes_is_a_shapers_and_a_schedule_of_rates_is_a_series_of_changes() -> None:
    changed = plan([{"at": "5s", "link": "a -- b", "rate": "2Mbit"}], rate="10Mbit")
    scheduled = plan([], trace={"schedule": [["0s", "10Mbit"], ["5s", "2Mbit"]]})
    assert changed.nodes == scheduled.nodes
    assert changed.course == scheduled.course
    assert changed.nodes[0].interfaces[0].egress.qdiscs[1] == Hfsc(rate_bit_per_s=10**7)
    assert ends(changed.course[0])[0].egress.qdiscs[1] == Hfsc(rate_bit_per_s=2 * 10**6)


def test_a_seed_makes_a_loss_a_programs_and_each_direction_has_a_stream_of_its_own() -> None:
    lossy = plan([], loss={"random": "1%", "seed": "7"}).nodes
    there, back = (node.interfaces[0].egress for node in lossy)
    assert isinstance(there.drops, DropRandom)
    assert isinstance(back.drops, DropRandom)
    assert (there.drops.probability, there.qdiscs) == (0.01, [])
    assert there.drops.seed != back.drops.seed
    again = egress(loss={"random": "1%", "seed": "7"})
    assert again == there
    assert egress(loss={"random": "1%", "seed": "8"}) != there


def test_a_change_of_the_loss_keeps_its_seed_and_a_change_of_the_seed_its_loss() -> None:
    found = plan(
        [{"at": "1s", "link": "a -- b", "loss": "5%"}, {"at": "2s", "link": "a -- b", "loss": {"seed": "8"}}],
        a_to_b={"loss": {"random": "1%", "seed": "7"}},
    )
    first, second = (ends(change)[0].egress.drops for change in found.course)
    assert isinstance(first, DropRandom)
    assert isinstance(second, DropRandom)
    assert (first.probability, second.probability) == (0.05, 0.05)
    assert first.seed != second.seed


@pytest.mark.parametrize("rate", ["1kbit", "10Mbit", "100Gbit", "1Tbit"])
def test_the_outer_limit_holds_the_wire_filled_with_the_smallest_frames_and_the_queue(rate: str) -> None:
    outer, inner = netems(rate=rate, delay="20ms", queue={"limit": "50"})
    assert outer.limit_packets >= inner.rate_bit_per_s * 0.020 / (64 * 8) + 50  # type: ignore[operator]


def test_no_limit_exceeds_what_the_kernel_can_keep() -> None:
    assert netems(rate="10Tbit", delay="24h")[0].limit_packets == LIMIT_MAX


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
    chain = netems(rate="10Mbit", delay=f"{delay_us}us", queue={"limit": str(limit)})
    queue_only = netems(rate="10Mbit", queue={"limit": str(limit)})[1:]
    expected = {number: end + delay_us * 1000 for number, end in through(queue_only, packets).items()}
    assert through(chain, packets) == expected
