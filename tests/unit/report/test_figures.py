"""Figures show what is in the tables; all look alike, and each can be written in every format."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import dilaton
from dilaton.cli.errors import BadInputError
from dilaton.cli.results.report import report
from dilaton.measure.operations.history import Interval
from dilaton.report.drawings import draw
from dilaton.report.figures.adaptation import draw_adaptation
from dilaton.report.figures.bands import Band, draw_bands, lanes, processes_of, within
from dilaton.report.figures.clocks import draw_clocks
from dilaton.report.figures.distributions import draw_ecdf
from dilaton.report.figures.layout import place
from dilaton.report.figures.marks import marks_of
from dilaton.report.figures.nodes import write_names
from dilaton.report.figures.sequence import thin
from dilaton.report.figures.series import draw_interfaces, draw_intervals, draw_tcp
from dilaton.report.figures.served import draw_flows, draw_percentiles, draw_requests, latencies
from dilaton.report.figures.topology import utilisation
from dilaton.report.fitting import LEGEND_ROW_IN, NARROW_IN, fit
from dilaton.report.style import COLOURS, HEIGHT_IN, WIDTH_IN, Drawing, applied
from tests.unit.measure import made


def drawings(path: Path) -> list[Drawing]:
    with applied():
        return draw(dilaton.load(path))[0]


def test_every_figure_has_a_title_a_caption_and_labelled_axes(tmp_path: Path) -> None:
    for drawing in drawings(made.run_dir(tmp_path)):
        assert drawing.title and drawing.caption.endswith(".")
        for axes in drawing.figure.axes:
            if axes.axison and axes.get_label() != "<colorbar>":
                assert axes.get_ylabel(), drawing.name
        if drawing.name != "topology":
            assert drawing.figure.axes[-1].get_xlabel(), drawing.name


@pytest.mark.parametrize("width_in", [NARROW_IN, WIDTH_IN])
def test_no_text_of_a_figure_is_over_another_or_cut_off(tmp_path: Path, width_in: float) -> None:
    for drawing in drawings(made.run_dir(tmp_path)):
        with applied():
            fit(drawing.figure, width_in)
            canvas = FigureCanvasAgg(drawing.figure)
            canvas.draw()
        shown = [text for axes in drawing.figure.axes for text in texts_of(axes)]
        shown += [text for legend in drawing.figure.legends for text in legend.get_texts()]
        boxes = {text: text.get_window_extent(canvas.get_renderer()) for text in shown}
        for one, other in itertools.combinations(boxes, 2):
            assert not boxes[one].overlaps(boxes[other]), f"{drawing.name}: {one} {other}"
        paper = drawing.figure.bbox.padded(1)
        for text, box in boxes.items():
            assert paper.x0 <= box.x0 and box.x1 <= paper.x1, f"{drawing.name}: {text}"


def texts_of(axes: Axes) -> list[Text]:
    """All texts of axes that are seen; of ticks those within the view."""
    found = [axes.xaxis.label, axes.yaxis.label, *axes.texts]
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in found if axes.axison and text.get_visible() and text.get_text()]


def test_names_and_legend_of_a_figure_follow_its_width_and_come_back() -> None:
    bands = [Band(f"change number {number} of a link", number, number) for number in range(10)]
    figure = draw_intervals({f"program {n}": [Interval(0.0, 10.0, 1e6)] for n in range(6)}, bands).figure

    def names() -> list[object]:
        return [(text.get_text(), text.get_position()) for text in figure.axes[0].texts if text.get_visible()]

    fit(figure, WIDTH_IN)
    wide = names()
    fit(figure, NARROW_IN)
    assert len(names()) < len(wide)
    assert figure.get_figheight() == pytest.approx(HEIGHT_IN + LEGEND_ROW_IN), "the legend has a row more"
    fit(figure, WIDTH_IN)
    assert names() == wide
    assert figure.get_figheight() == pytest.approx(HEIGHT_IN)


def test_all_colours_differ() -> None:
    assert len(set(COLOURS)) == len(COLOURS)


def test_the_series_show_the_samples(tmp_path: Path) -> None:
    run = dilaton.load(made.run_dir(tmp_path))
    (drawing,) = draw_interfaces(run.interfaces, [])
    sent = drawing.figure.axes[0].get_lines()[0]
    assert np.nanmax(np.asarray(sent.get_ydata(), float)) == pytest.approx(10e6)
    assert len(sent.get_xdata()) == 21


def test_of_many_interfaces_the_busiest_are_drawn_and_the_caption_says_so() -> None:
    rows = [[n * 10**8, f"n{k:02}", "eth0", 0, 0, 0, n * k, 1, 0, 0, 0, 0, 0, 0] for k in range(30) for n in range(3)]
    from dilaton.measure.layouts import INTERFACES
    from dilaton.measure.tables import read_samples

    (drawing,) = draw_interfaces(read_samples(INTERFACES, [made.csv(made.INTERFACES, rows)]), [])
    labels = [line.get_label() for line in drawing.figure.axes[0].get_lines()]
    assert labels == [f"n{k}:eth0" for k in range(29, 21, -1)]
    assert "the 8 with most of 29 interfaces" in drawing.caption


def test_bands_are_the_processes_that_did_not_run_all_the_time(tmp_path: Path) -> None:
    run = dilaton.load(made.run_dir(tmp_path))
    assert processes_of(run.processes, 2.0) == [Band("ping", 0.01, 1.5, "process")]
    assert marks_of(run.events, 2.0) == []


def changed(link: str, at_s: float, what: str, up: bool = True) -> dict[str, Any]:
    event = {"kind": "link-changed", "link": link, "at_ns": at_s * 1e9, "what": what, "up": up}
    return event | {"t_s": at_s + 1e-6 * len(link)}


def test_changes_of_one_instant_share_a_mark_in_the_words_of_the_lab() -> None:
    events = [
        changed("a:eth0--r:eth0", 1.0, "loss 5%"),
        changed("r:eth1--bb:eth0", 1.0, "loss 5%"),
        changed("r:eth2--c:eth0", 1.0, "rate 1Mbit"),
        {"kind": "exited", "process": "ping", "node": "a", "expected": True, "t_s": 1.2},
        {"kind": "exited", "process": "server", "node": "c", "expected": False, "t_s": 1.5},
    ]
    assert marks_of(pd.DataFrame(events), 2.0) == [
        Band("2 links loss 5%; r--c rate 1Mbit", 1.0, 1.0),
        Band("server exited", 1.5, 1.5),
    ]


def test_links_with_the_same_ends_are_named_with_their_interfaces() -> None:
    events = [changed("a:eth0--b:eth0", 1.0, "up"), changed("a:eth1--b:eth1", 2.0, "up")]
    assert [mark.name for mark in marks_of(pd.DataFrame(events), 3.0)] == ["a:eth0--b:eth0 up", "a:eth1--b:eth1 up"]


def test_an_outage_lasts_until_no_link_is_down() -> None:
    events = [
        changed("a:eth0--b:eth0", 1.0, "down", up=False),
        changed("b:eth1--c:eth0", 2.0, "down", up=False),
        changed("a:eth0--b:eth0", 3.0, "up"),
        changed("b:eth1--c:eth0", 4.0, "up"),
        changed("a:eth0--b:eth0", 5.0, "down", up=False),
    ]
    bands = [mark for mark in marks_of(pd.DataFrame(events), 6.0) if mark.kind == "outage"]
    assert [(band.begin_s, band.end_s) for band in bands] == [(1.0, 4.0), (5.0, 6.0)]


def test_a_name_is_put_where_it_touches_no_other() -> None:
    assert lanes([(0, 10), (5, 15), (12, 20), (6, 8), (7, 9), (7, 11)]) == [0, 1, 0, 2, 3, None]
    figure = Figure(figsize=(7.2, 2.5))
    where = figure.subplots()
    where.plot([0, 10], [0, 1])
    draw_bands(where, [Band(f"link{number}--router down", number / 4, number / 4) for number in range(40)])
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in where.texts if text.get_visible()]
    assert len(boxes) > 8
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_a_graph_of_a_part_of_a_run_has_what_happened_in_it() -> None:
    bands = [Band("early", 0, 1, "process"), Band("", 1, 3, "outage"), Band("late", 9, 9)]
    assert within(bands, 2, 5) == [Band("", 2, 3, "outage")]


def test_utilisation_is_the_mean_rate_in_the_busier_direction(tmp_path: Path) -> None:
    run = dilaton.load(made.run_dir(tmp_path))
    assert run.plan is not None
    assert utilisation(run.plan, run.interfaces) == {"a:eth0--b:eth0": pytest.approx(0.1)}


def test_percentiles_of_programs_become_points_in_their_order() -> None:
    direction = {"latency": {"min": 1e-4, "p99": 0.02, "p50": 1e-3, "p99.9": 0.05}}
    results = {
        "wrk": {"latency": {"avg": 0.002, "p50": 0.001, "p90": 0.003}},
        "fio": {"jobs": {"random": {"read": direction}}},
        "ping": {"rtt": {"avg": 0.04}},
        "curl": {"latency": {"min": 1.0, "avg": 2.0, "max": 3.0}},
    }
    known = list(latencies(results))
    assert known == [
        ("wrk", [(0.5, 0.001), (0.9, 0.003)]),
        ("fio random read", [(0.5, 1e-3), (0.99, 0.02), (pytest.approx(0.999), 0.05)]),
    ]
    (where,) = draw_percentiles(known).figure.axes
    assert where.get_xscale() == "log", "50 times between the least and the largest"
    assert [line.get_label() for line in where.get_lines()] == ["wrk", "fio random read"]


def test_flows_are_drawn_from_their_least_to_their_largest_delay() -> None:
    latency = {"min": 0.010, "avg": 0.012, "max": 0.030, "stdev": 0.001}
    drawing = draw_flows([(f"dec {number}", {"latency": latency}) for number in range(10)])
    whole, mean = drawing.figure.axes[0].get_lines()[:2]
    assert (list(whole.get_xdata()), list(mean.get_xdata())) == ([0.010, 0.030], [0.012])
    assert "the first 8 of 10" in drawing.caption
    assert drawing.figure.axes[0].get_xscale() == "linear"
    (where,) = draw_flows([("near", {"latency": latency}), ("far", {"latency": latency | {"max": 3.0}})]).figure.axes
    assert where.get_xscale() == "log", "300 times between the least and the largest"


def test_requests_of_a_log_are_drawn_by_the_second() -> None:
    (where,) = draw_requests({"web": [3, 0, 5]}).figure.axes
    (line,) = where.get_lines()
    assert list(line.get_xdata()) == [0, 1, 2, 3]
    assert list(line.get_ydata()) == [3, 0, 5, 5]


def test_epochs_are_drawn_from_the_beginning_of_the_first_on() -> None:
    epochs = pd.DataFrame({"begin_s": [0.5, 1.0], "end_s": [1.0, 2.0], "tdf": 4.0, "busy": 0.5, "late_us": [3.0, 8.0]})
    late = draw_adaptation(epochs, 6.0, []).figure.axes[2]
    (line, bound) = late.get_lines()
    assert list(line.get_xdata()) == [0.5, 1.0, 2.0]
    assert list(line.get_ydata()) == pytest.approx([3e-6, 3e-6, 8e-6])
    assert list(bound.get_ydata()) == pytest.approx([6e-6, 6e-6])


def test_nodes_are_placed_as_far_apart_as_they_are_in_the_graph() -> None:
    line = place(6, [(n, n + 1) for n in range(5)])
    assert np.ptp(line[:, 1]) < 0.1 * np.ptp(line[:, 0])
    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    assert steps.max() < 1.3 * steps.min()
    apart = place(4, [(0, 1), (2, 3)])
    assert np.isfinite(apart).all()
    assert place(1, []).shape == (1, 2)


@pytest.mark.parametrize("leaves", [3, 4, 5, 8, 15, 40])
def test_leaves_of_one_hub_do_not_hide_each_other(leaves: int) -> None:
    where = place(leaves + 1, [(0, leaf) for leaf in range(1, leaves + 1)])
    # As far as the marks are wide, on paper of the page's width.
    least = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(where, 2))
    assert least > np.ptp(where, axis=0).max() * 9 / (WIDTH_IN * 72)


def test_many_processes_at_once_do_not_hide_the_series() -> None:
    where = Figure().subplots()
    where.set_xlim(0, 100)
    draw_bands(where, [Band(f"p{number}", number, 60.0, "process") for number in range(52)])
    light = [1.0] * 100
    for span in where.patches:
        begin, end = span.get_path().get_extents(span.get_patch_transform()).intervalx
        for at in range(round(begin), round(end)):
            light[at] *= 1 - float(span.get_alpha() or 0)
    assert light[60:] == [1.0] * 40
    assert 0.7 < min(light) == light[55] < light[0] < 1


def test_names_are_on_the_side_of_their_nodes_that_is_away_from_others() -> None:
    where = np.array([[0.0, 0.0], [0.0, 0.2], [5.0, 9.0], [5.2, 9.0], [10.0, 4.0]])
    axes = Figure(figsize=(7, 7)).subplots()
    write_names(axes, ["low", "high", "left", "right", "alone"], where, 5)
    sides = {text.get_text(): (text.get_ha(), text.get_va()) for text in axes.texts}
    assert sides == {
        "low": ("center", "top"),
        "high": ("center", "bottom"),
        "left": ("right", "bottom"),
        "right": ("left", "bottom"),
        "alone": ("center", "bottom"),
    }


def test_thinning_keeps_one_mark_for_each_place() -> None:
    t = np.repeat(np.linspace(0, 1, 100), 1000)
    assert len(thin(t, t)) == 100
    assert thin(np.array([]), np.array([])).tolist() == []


def test_every_figure_and_table_is_written_in_every_format(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    report(path, ["svg,pdf", "png", "csv", "parquet"], None)
    files = {file.name: file for file in (path / "report").iterdir()}
    assert {f"topology.{each}" for each in ("svg", "pdf", "png")} <= set(files)
    assert files["tcp.pdf"].read_bytes().startswith(b"%PDF")
    interfaces = pd.read_parquet(files["interfaces.parquet"])
    pd.testing.assert_frame_equal(interfaces, dilaton.load(path).interfaces, check_dtype=False)
    assert len(pd.read_csv(files["packets-a-eth0.csv"])) == 605
    assert {"clock.csv", "epochs.csv"} <= set(files)
    processes = pd.read_csv(files["processes.csv"]).set_index("name")
    assert json.loads(processes.argv["ping"]) == ["ping", "-c", "3", "b"]
    assert json.loads(processes.result["ping"])["rtt"]["avg"] == pytest.approx(0.0202)
    assert pd.isna(processes.result["server"])


def test_unknown_formats_and_foreign_directories_are_refused(
    tmp_path: Path,
) -> None:
    path = made.run_dir(tmp_path / "run")
    with pytest.raises(BadInputError, match="gif: not a format; write some of svg, pdf, png, csv, parquet"):
        report(path, ["gif"], None)
    with pytest.raises(BadInputError, match="not a run directory"):
        report(tmp_path, [], None)
    (path / "report").symlink_to(tmp_path)
    with pytest.raises(BadInputError, match=r"run/report: cannot be written: it is a symbolic link"):
        report(path, ["csv"], None)


@pytest.mark.parametrize(
    ("speeds", "labels"),
    [((0.15, 6.0), ["0.2", "0.5", "1", "2", "5"]), ((0.003, 9000.0), ["0.01", "10", "10000"])],
    ids=["narrow", "wide"],
)
def test_speeds_that_differ_widely_have_plain_numbers_beside_them(
    speeds: tuple[float, float], labels: list[str]
) -> None:
    clock = pd.DataFrame({"host_s": [0.0, 1.0, 2.0], "virtual_s": [0.0, speeds[0], sum(speeds)], "tdf": 2.0})
    with applied():
        figure = draw_clocks(clock).figure
        FigureCanvasAgg(figure).draw()
    axis = figure.axes[1]
    low, high = axis.get_ylim()
    ticks = zip(axis.get_yticks(), axis.get_yticklabels(which="both"), strict=False)
    assert [label.get_text() for place, label in ticks if low <= place <= high] == labels


def test_a_fault_is_a_band_from_its_begin_to_its_end_or_to_that_of_the_run() -> None:
    rows = [
        {"kind": "began", "fault": "x", "what": "pause a", "t_s": 1.0},
        {"kind": "began", "fault": "y", "what": "pause b", "t_s": 2.0},
        {"kind": "undone", "fault": "x", "what": "pause a", "t_s": 3.0},
    ]
    assert marks_of(pd.DataFrame(rows), 9.0) == [Band("pause a", 1.0, 3.0, "fault"), Band("pause b", 2.0, 9.0, "fault")]


def test_few_values_are_drawn_one_by_one_and_many_as_steps() -> None:
    for count, marker in ((3, "o"), (30, "None")):
        with applied():
            where = Figure().subplots()
            draw_ecdf(where, np.arange(count), linestyle="-")
        (line,) = where.lines
        assert (line.get_marker(), line.get_linestyle()) == (marker, "None" if count == 3 else "-")
        assert float(np.max(np.asarray(line.get_ydata()))) == 1


def test_connections_have_names_of_nodes_and_those_that_only_control_others_are_left_out() -> None:
    rows = [
        {"t_s": second, "source": "10.0.0.0", "source_port": port, "destination": "10.0.0.1", "destination_port": 5201}
        | {"bytes_acked": second * sent, "goodput_bit_per_s": sent, "cwnd_packets": 10, "rtt_us": 100}
        for second in (1, 2)
        for port, sent in ((41000, 200), (41002, 10**6))
    ]
    with applied():
        (drawing,) = draw_tcp(pd.DataFrame(rows), [], {"10.0.0.0": "a", "10.0.0.1": "b"})
    assert [text.get_text() for legend in drawing.figure.legends for text in legend.get_texts()] == ["a:41002 > b:5201"]
    assert "(without 1 that carried less than 0.1% of what the largest did)" in drawing.caption


def test_a_capture_says_how_many_of_its_flows_its_figures_show(tmp_path: Path) -> None:
    flows = [("10.0.0.0", 41000 + number, "10.0.0.1", 5201) for number in range(3)]
    packets = [
        (step * 1000 + number, made.tcp_frame(ends, 1 + step * sent, 1, sent), made.OUT)
        for step in range(3)
        for number, (ends, sent) in enumerate(zip(flows, (1400, 1400, 1), strict=True))
    ]
    run = made.run_dir(tmp_path)
    (run / "captures" / "a.eth0.pcapng").write_bytes(made.pcapng(packets))
    captions = [drawing.caption for drawing in drawings(run) if drawing.name == "gaps-a-eth0"]
    assert captions == ["Time from each segment with data to the next, of the 2 largest of 3 flows captured on a:eth0."]
