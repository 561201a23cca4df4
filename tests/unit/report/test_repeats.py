"""The connections of TCP are drawn over repeats: means at each instant, with a band."""

from __future__ import annotations

import pandas as pd
import pytest

from dilaton.report.figures.repeats import connections_of, draw_repeats

NODES = {"10.0.0.1": "a", "10.0.0.2": "b"}


def samples(cwnds: list[float], port: int = 41000) -> pd.DataFrame:
    """A connection of a to b, and the one by which iperf3 controls it."""
    rows = [
        {
            "t_ns": number * 10**8,
            "t_s": number / 10,
            "source": "10.0.0.1",
            "source_port": source_port,
            "destination": "10.0.0.2",
            "destination_port": 5201,
            "cwnd_packets": cwnd,
            "rtt_us": 0.0 if number == 0 else 20e3,
            "bytes_acked": acked,
            "goodput_bit_per_s": None if number == 0 else 1e6,
        }
        for source_port, acked in ((port - 1, 100), (port, 10**6))
        for number, cwnd in enumerate(cwnds)
    ]
    return pd.DataFrame(rows)


def test_connections_of_repeats_share_their_names_though_their_ports_differ() -> None:
    for port in (41000, 52000):
        assert connections_of(samples([10, 20], port), NODES).series.unique().tolist() == ["a > b:5201"]


def test_a_connection_on_which_a_server_sends_is_told_by_the_port_of_the_server() -> None:
    swapped = {"source_port": "destination_port", "destination_port": "source_port"}
    for port in (41000, 52000):
        found = connections_of(samples([10, 20], port).rename(columns=swapped), NODES)
        assert found.series.unique().tolist() == ["a:5201 > b"]


def test_several_connections_of_the_same_ends_are_numbered_as_they_began() -> None:
    later = samples([5, 6], 30000).assign(t_ns=lambda table: table.t_ns + 10**8)
    found = connections_of(pd.concat([later, samples([10, 20])]), NODES)
    assert found.groupby("series").source_port.first().to_dict() == {"a > b:5201": 41000, "a > b:5201 (2)": 30000}


def test_lines_are_means_and_bands_their_confidence_intervals() -> None:
    repeats = [
        connections_of(samples(cwnds, port), NODES) for port, cwnds in enumerate(([9, 18], [10, 20], [11, 22]), 50000)
    ]
    [drawing] = draw_repeats({"cubic": repeats, "bbr": repeats[:1]})
    assert "Without 4 that carried less than 0.1% of what the largest of their run did." in drawing.caption
    cwnd = next(each for each in drawing.figure.axes if "cwnd" in each.get_ylabel())
    mean, single = cwnd.lines
    assert mean.get_ydata().tolist() == [10, 20] and mean.get_label() == "cubic, a > b:5201"
    assert single.get_ydata().tolist() == [9, 18]
    # Of three values with a deviation of 1: t of two degrees of freedom, 4.303, by the root of 3.
    band = cwnd.collections[0].get_paths()[0].vertices
    assert band[band[:, 0] == 0][:, 1].min() == pytest.approx(10 - 2.4841, rel=1e-4)
    assert band[band[:, 0] == 0.1][:, 1].max() == pytest.approx(20 + 2 * 2.4841, rel=1e-4)


def test_a_band_much_wider_than_what_lines_do_does_not_press_them_flat() -> None:
    repeats = [connections_of(samples(cwnds), NODES) for cwnds in ([10, 20], [14, 24])]
    [drawing] = draw_repeats({"cubic": repeats})
    cwnd = next(each for each in drawing.figure.axes if "cwnd" in each.get_ylabel())
    assert cwnd.get_ylim()[1] == pytest.approx(22 * 1.5), "the band would go to 22 + 12.7 * 2"
    assert "Bands go on above the figure." in drawing.caption


def test_nothing_is_drawn_where_nothing_was_sampled() -> None:
    assert list(draw_repeats({"": [connections_of(samples([]).reindex(columns=samples([1]).columns), NODES)]})) == []
    assert list(draw_repeats({})) == []
