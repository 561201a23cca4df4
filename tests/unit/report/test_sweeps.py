"""The runs of a sweep, with fields and without."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from dilaton.report.figures.swept import draw_sweep
from dilaton.report.sweeps import (
    Swept,
    latex_of,
    means_of,
    sets_of,
    table_of,
    units_of,
    write_means,
)
from dilaton.run.points import Point, points
from dilaton.run.record import record as records
from dilaton.run.record.model import CheckRecord
from tests.unit.measure import made


def test_each_run_has_a_directory_told_by_its_values() -> None:
    found = [point.directory for point in points({"time.tdf": ["1", "1/2"], "links.0.rate": ["1Gbit"]}, 2)]
    assert found == [f"time.tdf={tdf},links.0.rate=1Gbit/{repeat}" for tdf in ("1", "1_2") for repeat in (0, 1)]


def test_a_lab_is_repeated_without_fields() -> None:
    assert [point.directory for point in points({}, 3)] == ["0", "1", "2"]


def test_repeats_without_fields_are_neither_drawn_nor_compared(tmp_path: Path) -> None:
    table = pd.DataFrame({"run": ["0", "1"], "state": "finished", "ping.rtt.min": [0.01, 0.02]})
    assert list(draw_sweep(table, {}, {"ping.rtt.min": "s"})) == []
    (tmp_path / "sweep.json").write_text(json.dumps({"lab": "", "fields": []}))
    table.to_csv(tmp_path / "sweep.csv", index=False)
    with pytest.raises(ValueError, match="no sets to compare"):
        sets_of(tmp_path, None)


def test_equal_results_of_repeats_are_drawn_though_their_mean_is_rounded() -> None:
    rtt = 0.1
    assert sum([rtt] * 3) / 3 > rtt
    table = pd.DataFrame({"time.tdf": "1", "ping.rtt.min": [rtt] * 3})
    [drawing] = draw_sweep(table, {"time.tdf": ["1"]}, {"ping.rtt.min": "s"})
    assert drawing.name == "sweep-ping-rtt-min"


TABLE = pd.DataFrame(
    {
        "time.tdf": ["1", "1", "1", "1/2"],
        "cc": ["a_b", "a_b", "a_b", "a_b"],
        "bulk.throughput": [9.0, 10.0, 11.0, 5.0],
        "ping.loss": [0.0, 0.5, None, None],
    }
)
VALUES = {"time.tdf": ["1", "1/2"], "cc": ["a_b"]}
UNITS = {"bulk.throughput": "bit/s", "ping.loss": ""}


def test_means_of_repeats_have_their_confidence_interval() -> None:
    means = means_of(TABLE, VALUES, UNITS)
    assert means[["time.tdf", "cc", "runs", "bulk.throughput"]].to_numpy().tolist() == [
        ["1", "a_b", 3, 10.0],
        ["1/2", "a_b", 1, 5.0],
    ]
    # Of three values with a deviation of 1: t of two degrees of freedom, 4.303, by the root of 3.
    assert means["bulk.throughput ±"][0] == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    assert means["bulk.throughput ±"].isna().tolist() == [False, True]
    assert means["ping.loss"].tolist()[0] == 0.25 and means["ping.loss"].isna().tolist() == [False, True]


def test_bars_of_figures_are_confidence_intervals() -> None:
    drawing = next(draw_sweep(TABLE, VALUES, UNITS))
    [bars] = drawing.figure.axes[0].containers
    low, high = bars.lines[2][0].get_segments()[0][:, 1]
    assert (low, high) == pytest.approx((10 - 2.4841, 10 + 2.4841), rel=1e-4)


def test_names_have_columns_and_quantities_have_lines() -> None:
    table = TABLE.assign(cc=["cubic", "bbr", "cubic", "bbr"])
    named = next(draw_sweep(table, {"cc": ["cubic", "bbr"], "time.tdf": ["1", "1/2"]}, UNITS)).figure.axes[0]
    assert len(named.patches) == 4
    # One beside the other.
    assert len({patch.get_x() for patch in named.patches}) == 4
    assert [label.get_text() for label in named.get_xticklabels()] == ["cubic", "bbr"]
    assert not next(draw_sweep(TABLE, VALUES, UNITS)).figure.axes[0].patches


def test_a_table_for_latex_has_nothing_that_latex_takes_for_commands() -> None:
    lines = latex_of(means_of(TABLE, VALUES, UNITS), VALUES, UNITS).splitlines()
    assert lines[0] == "\\begin{tabular}{llrrr}"
    assert lines[2] == "time.tdf & cc & runs & bulk.throughput (bit/s) & ping.loss \\\\"
    assert lines[4] == "1 & a\\_b & 3 & $10 \\pm 2.5$ & $0.25 \\pm 3.2$ \\\\"
    assert lines[5] == "1/2 & a\\_b & 1 & $5$ & -- \\\\"


def test_labels_are_what_people_read_in_figures_and_tables(tmp_path: Path) -> None:
    labels = {"time.tdf": "dilation", "bulk.throughput": "goodput", "cc": "congestion control"}
    [first, second] = draw_sweep(TABLE, VALUES, UNITS, labels)
    [where] = first.figure.axes
    assert (where.get_xlabel(), where.get_ylabel(), first.title) == ("dilation", "goodput", "goodput")
    assert first.caption.startswith("goodput over dilation")
    [drawn] = first.figure.legends
    assert [text.get_text() for text in drawn.get_texts()] == ["congestion control a_b"]
    assert (first.name, second.title) == ("sweep-bulk-throughput", "ping.loss"), "files keep their names"
    write_means(tmp_path, Swept("x", VALUES, TABLE, UNITS, tmp_path, labels))
    head = (tmp_path / "sweep-means.csv").read_text().splitlines()[0]
    assert head == "dilation,congestion control,runs,goodput,goodput ±,ping.loss,ping.loss ±"
    assert (
        "dilation & congestion control & runs & goodput (bit/s) & ping.loss"
        in (tmp_path / "sweep-means.tex").read_text()
    )


@pytest.mark.parametrize(("streams", "index"), [([[9e6], [3e6]], 0.8), ([[9e6, 3e6]], None), ([[0.0], [0.0]], None)])
def test_the_fairness_of_all_flows_is_a_column_where_several_programs_sent(
    tmp_path: Path, streams: list[list[float]], index: float | None
) -> None:
    run = made.run_dir(tmp_path / "run")
    record = json.loads((run / "run.json").read_text())
    sent = [
        process | {"result": {"streams": rates}} for process, rates in zip(record["processes"], streams, strict=False)
    ]
    record["processes"][: len(sent)] = sent
    (run / "run.json").write_text(json.dumps(record))
    done = [(Point((), 0), run, records.load(run))]
    assert table_of(done).to_dict("records")[0].get("fairness") == (None if index is None else pytest.approx(index))
    assert units_of(done).get("fairness") == (None if index is None else "")


def test_what_a_lab_expects_something_of_comes_first_and_what_did_not_vary_has_no_figure(tmp_path: Path) -> None:
    table = TABLE.assign(**{"ping.loss": 0.0, "bulk.retransmits": [1.0, 2.0, 3.0, 4.0]})
    units = {"bulk.throughput": "bit/s", "ping.loss": "", "bulk.retransmits": ""}
    swept = Swept("x", VALUES, table, units, tmp_path, {}, ("bulk.throughput",))
    assert swept.constant == ["ping.loss"]
    assert [drawing.name for drawing in draw_sweep(table, VALUES, units)][1] == "sweep-ping-loss"
    assert swept.further == {"sweep-ping-loss", "sweep-bulk-retransmits"}
    assert swept.said(swept.asked) == (
        ["time.tdf", "cc", "runs", "bulk.throughput"],
        [["1", "a_b", "3", "10 bit/s ± 2.484 bit/s"], ["1/2", "a_b", "1", "5 bit/s"]],
    )
    asks_nothing = Swept("x", VALUES, table, units, tmp_path, {})
    assert not asks_nothing.further, "where nothing is asked for, all is shown"


def test_what_is_asked_for_is_read_from_expectations_and_labels(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path / "0")
    record = records.load(path)
    units = list(units_of([(Point((), 0), path, record)]))
    assert len(units) > 2
    check = CheckRecord(text=f"{units[1]} > 1", passed=True, value=2.0)
    done = [(Point((), 0), path, record.model_copy(update={"checks": [check]}))]
    assert Swept.of(tmp_path, done, {}).asked == (units[1],)
    swept = Swept.of(tmp_path, done, {}, {units[2]: "called"})
    assert list(swept.units) == [units[1], units[2], units[0], *units[3:]]
