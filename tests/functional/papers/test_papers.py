"""The labs of the papers run, and what the papers found is found in small versions of them."""

from __future__ import annotations

import importlib.util
import io
import sys

import pytest

import dilaton
from dilaton.measure.packets.table import read_packets
from dilaton.measure.packets.tcp import flow_packets, tcp_flows, times_between_packets
from tests.conftest import ROOT, RunLab

PAPERS = ROOT / "papers"


@pytest.mark.parametrize(("loss", "lost"), [("0%", False), ("{every: 100}", True)])
def test_the_time_between_packets_is_the_same_at_every_tdf(run_lab: RunLab, loss: str, lost: bool) -> None:
    """NSDI'06, table 4, at TDFs at which the CPU takes little of a round trip: at TDF 1 it is the host's own, and packets are
    as much further apart as that is slower."""
    lab = PAPERS / "nsdi06-table4/lab.yaml"
    flows = []
    for tdf in ("20", "100"):
        outcome = run_lab(lab, "--set", f"time.tdf={tdf}", "--set", f"links.1.a_to_b.loss={loss}")
        assert outcome.status == 0
        capture = dilaton.load(outcome.path).capture("sender:eth0")
        flows.append(flow_packets(capture.table, capture.sack, tcp_flows(capture.table).iloc[0]))
    assert [bool(flow.data.again.any()) for flow in flows] == [lost, lost]
    less, more = (times_between_packets(flow).mean() for flow in flows)
    assert more == pytest.approx(less, rel=0.05)


def test_the_network_without_guests_has_the_rate_delay_and_losses_of_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """NSDI'06, figures 2 and 3: what the panel of native Linux is measured over, without a clock of the host."""
    spec = importlib.util.spec_from_file_location("native", PAPERS / "nsdi06-table4/native.py")
    assert spec and spec.loader
    native = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "native", native)
    spec.loader.exec_module(native)
    pipe = native.Pipe(100e6, 10_000_000, lose_every=3)
    frames = [bytes([number]) * 1250 for number in range(6)]
    for frame in frames[:5]:
        pipe.admit(frame, 1_000_000)
    pipe.admit(frames[5], 2_000_000)
    # A frame takes 100 us; the third and the sixth are lost.
    left = [(at_ns, frame[0]) for at_ns, frame in pipe.waiting]
    assert left == [(11_100_000, 0), (11_200_000, 1), (11_300_000, 3), (11_400_000, 4)]
    assert [frame[0] for frame in pipe.due(11_200_000)] == [0, 1]
    assert not list(pipe.due(11_299_999))
    capture = read_packets(io.BytesIO(native.pcapng([(5_000_000_123, bytes(61)), (5_000_000_456, bytes(64))])))
    assert capture.is_whole
    assert capture.table.t_s.tolist() == [5.000000123, 5.000000456]


def test_flows_share_a_bottleneck_alike_at_every_tdf(run_lab: RunLab) -> None:
    """NSDI'06, figure 5: here for too short a time for flows to come to their shares, so that their sum alone is held.

    At a quarter of the rate, and TDFs that leave CPU over: at TDF 1 it takes much of a host's core to carry these flows.
    """
    sums = []
    for tdf in ("10", "20"):
        lab = PAPERS / "nsdi06-flows/lab.yaml"
        smaller = ["links.0.rate=25Mbit", "links.0.queue.limit=250", "stop_after=7100ms"]
        sets = [argument for value in [f"time.tdf={tdf}", *smaller] for argument in ("--set", value)]
        outcome = run_lab(lab, *sets)
        assert outcome.status == 0
        tcp = dilaton.load(outcome.path).tcp
        sent = tcp[tcp.destination_port.between(5201, 5203)]
        assert set(sent.node) == {"near", "middle", "far"}
        acknowledged = sent.groupby("t_s").bytes_acked.sum()
        # After slow start. What waits for a segment that was lost is acknowledged a second later: six of them make that 1 %.
        sums.append((acknowledged[7.0] - acknowledged[2.0]) * 8 / 5.0)
    assert sums[1] == pytest.approx(sums[0], rel=0.05)
    assert sums[0] < 25e6


def test_flows_are_as_fast_over_five_guests_as_over_one(run_lab: RunLab) -> None:
    """NSDI'06, figure 6: here for too short a time for flows to come to their shares, so that their sum alone is held.

    With a queue of 50 ms, so that what was lost is soon sent again and acknowledged.
    """
    smaller = ["links.0.rate=50Mbit", "links.0.queue.limit=200", "stop_after=5100ms"]
    slower = ["time.tdf=20", "guests.receivers.tdf=20"]
    sums = []
    for guests in (1, 5):
        lab = PAPERS / "nsdi06-many-vms/lab.yaml"
        placed = [f"nodes.s{number}.guest=senders{number * guests // 10}" for number in range(10)]
        sets = [argument for value in [*smaller, *slower, *placed] for argument in ("--set", value)]
        outcome = run_lab(lab, *sets)
        assert outcome.status == 0
        assert len(outcome.record["guests"]) == guests + 1
        tcp = dilaton.load(outcome.path).tcp
        sent = tcp[tcp.destination_port.between(5201, 5210) & (tcp.node != "receiver")]
        acknowledged = sent.groupby("t_s").bytes_acked.sum()
        # After slow start, whose end hangs on a few packets.
        sums.append((acknowledged[5.0] - acknowledged[2.0]) * 8 / 3)
    assert sums[1] == pytest.approx(sums[0], rel=0.05)
    assert 40e6 < sums[0] < 50e6


def test_protocols_fill_a_long_link_alike_at_every_tdf(run_lab: RunLab) -> None:
    """NSDI'06, figure 10: four flows in place of fifty, over a slower link.

    Over 12 s, since a loss holds back what is acknowledged by up to a window, 0.3 MB of 7 in 3 s.
    """
    lab = PAPERS / "nsdi06-protocols/lab.yaml"
    smaller = ["links.0.rate=20Mbit", "links.0.delay=25ms", "links.0.queue.limit=100", "stop_after=15200ms"]
    sums = []
    for protocol, tdf in (("reno", "10"), ("bic", "40")):
        flows = f"run.1.exec=iperf3 -c receiver -P 4 -C {protocol} -t 600"
        sets = [argument for value in [*smaller, f"time.tdf={tdf}", flows] for argument in ("--set", value)]
        outcome = run_lab(lab, *sets)
        assert outcome.status == 0
        tcp = dilaton.load(outcome.path).tcp
        acknowledged = tcp[tcp.node == "sender"].groupby("t_s").bytes_acked.sum()
        sums.append((acknowledged[15.0] - acknowledged[3.0]) * 8 / 12)
    assert sums[1] == pytest.approx(sums[0], rel=0.03)
    assert 18e6 < sums[0] < 20e6
