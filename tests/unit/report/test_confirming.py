"""The results that are compared, and what has come out of it: in words, in the record, and as a verdict."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Literal

import pytest

import dilaton
from dilaton.cli.runs.result import print_confirmation
from dilaton.report.confirmation import REPEATS, Change, Confirmation, EnoughError, Judged, Measured, confirm
from dilaton.report.confirming import record_of, verdict_of
from dilaton.report.page import write_report
from dilaton.report.results import results_of
from dilaton.run.record import record as records
from dilaton.run.record.model import ConfirmationRecord, Level, ReasonRecord, VerdictRecord
from tests.unit.measure import made
from tests.unit.measure.results.test_iperf3 import text

Bad = Literal["suspect", "invalid"]

CHANGED = Change("f0 throughput", "bit/s", 937e6, 1190e6, 0.2126, 0.03, matters=True, is_different=True)
SAME = Change("ping rtt", "s", 0.02, 0.02, 0.001, 0.002, matters=False, is_different=False)
HIDDEN = Change("f1 throughput", "bit/s", 3e6, 4e6, 0.25, 0.4, matters=True, is_different=False)


def confirmation(found: Confirmation, level: Level = "valid") -> ConfirmationRecord:
    verdict = VerdictRecord(level=level, reasons=[])
    return record_of(found, verdict, Fraction(5), lambda rung, repeat: f"{rung}/{repeat}", 0.05, 9, 81.0)


def reason(level: Bad) -> ReasonRecord:
    return ReasonRecord(level=level, what="late", value=2, bound=1, unit="us", advice="raise tdf to 10")


def test_a_run_that_stays_the_same_is_confirmed() -> None:
    found = confirmation(Confirmation((Judged(0, 2, 1, "same", (SAME,)),)))
    assert (found.outcome, found.tdf_needed) == ("confirmed", None)
    assert found.what == "at TDF 20, no result differs by more than 5 %"
    before = VerdictRecord(level="valid", reasons=[])
    assert verdict_of(found, before, ["suspect"], is_adaptive=False) == VerdictRecord(level="confirmed", reasons=[])


@pytest.mark.parametrize(("more_time", "after"), [("valid", "confirmed"), ("confirmed", "confirmed"), ("suspect", "x")])
def test_a_run_that_exceeded_a_bound_is_as_good_as_the_valid_one_that_it_equals(more_time: Level, after: str) -> None:
    found = confirmation(Confirmation((Judged(0, 2, 5, "same", (SAME,)),)), "suspect")
    before = VerdictRecord(level="suspect", reasons=[reason("suspect")])
    verdict = verdict_of(found, before, ["valid", more_time], is_adaptive=False)
    assert verdict == (VerdictRecord(level="confirmed", reasons=[]) if after == "confirmed" else before)


@pytest.mark.parametrize(("before", "after"), [("valid", "suspect"), ("suspect", "suspect"), ("invalid", "invalid")])
def test_a_result_that_changes_is_named_with_the_tdf_that_helps(before: Level, after: Level) -> None:
    judged = [Judged(0, 2, 5, "changed", (CHANGED, SAME), 0.008), Judged(1, 3, 1, "changed", (CHANGED,))]
    found = confirmation(Confirmation((*judged, Judged(2, 4, 1, "same", (SAME,)))), before)
    assert (found.outcome, found.tdf_needed, found.indicated) == ("changed", 20, before)
    assert found.what == (
        "at TDF 20, in 5 runs of each, f0 throughput is 1.19 Gbit/s instead of 937 Mbit/s, 21 % apart, by chance up to "
        "3 %"
    )
    reasons = [] if before == "valid" else [reason("invalid" if before == "invalid" else "suspect")]
    verdict = verdict_of(found, VerdictRecord(level=before, reasons=reasons), [], is_adaptive=False)
    assert verdict.level == after
    told = next(each for each in verdict.reasons if each.what == found.what)
    assert (told.value, told.bound, len(verdict.reasons)) == (0.2126, 0.05, 1 + len(reasons))
    assert told.advice == (
        "raise tdf to 20, from which on nothing changes, or give a cpu to nodes whose programs compute"
    )


def test_a_search_that_ended_says_so() -> None:
    found = confirmation(Confirmation((Judged(0, 2, 5, "changed", (CHANGED,)),), "40 runs were made"))
    assert (found.tdf_needed, found.gave_up) == (None, "40 runs were made")
    verdict = verdict_of(found, VerdictRecord(level="valid", reasons=[]), [], is_adaptive=True)
    assert verdict.reasons[0].advice.startswith("raise tdf further than was tried")


def test_what_cannot_be_told_leaves_the_verdict() -> None:
    found = confirmation(Confirmation((Judged(0, 2, 5, "unclear", (HIDDEN, SAME), 0.4, missing=("g rtt",)),)))
    assert found.what == (
        "at TDF 20, in 5 runs of each, f1 throughput is 4 Mbit/s instead of 3 Mbit/s, 25 % apart, by chance up to 40 %, "
        "which so few runs cannot tell from chance; not all runs have a result for g rtt"
    )
    before = VerdictRecord(level="valid", reasons=[])
    assert verdict_of(found, before, ["valid"], is_adaptive=False) == before
    steered = confirmation(Confirmation((), "a link was changed by hand"))
    assert (steered.outcome, steered.what) == ("unclear", "the run could not be compared: a link was changed by hand")


def test_the_results_are_those_of_programs_with_when_and_how_they_ended(tmp_path: Path) -> None:
    lab = made.LAB.replace("expect:", "  - {on: a, name: bulk, exec: iperf3 -c b -J, after: server}\nexpect:")
    found = results_of(dilaton.load(made.run_dir(tmp_path, lab, bulk=text("tcp.json"))), 0.05)
    assert {"ping rtt", "ping delivered", "ping done", "bulk throughput", "bulk done"} <= found.decisive
    assert {"check ping.loss == 0%", "a:eth0 sent"} <= set(found.metrics)
    assert "a:eth0 sent" not in found.decisive
    assert not {"ping loss", "bulk retransmits", "ping time"} & set(found.metrics)
    # 1 % of the smallest delay, and a tenth of it would be nothing to anybody.
    assert found.least["ping rtt"] == pytest.approx(1e-4)


def test_how_long_nobody_answered_is_known_within_one_interval_of_requests(tmp_path: Path) -> None:
    lab = made.LAB.replace("exec: ping -c 3 b", "name: ping, exec: timeout 9 ping -i 0.2 -c 3 b")
    found = results_of(dilaton.load(made.run_dir(tmp_path, lab)), 0.05)
    assert (found.metrics["ping outage"].values.tolist(), found.least["ping outage"]) == ([0.0], 0.2)


@pytest.mark.parametrize(("jitter_ms", "runs"), [(0.4, 2), (2.0, 2 * REPEATS)])
def test_jitter_alone_asks_for_repeats_only_where_a_round_trip_would_notice(
    tmp_path: Path, jitter_ms: float, runs: int
) -> None:
    """A flow of UDP over 20 ms, whose jitter is 7 us with more time: up to a twentieth of a round trip it is the same."""
    lab = made.LAB.replace("expect:", "  - {on: a, name: bulk, exec: iperf3 -c b -u -J, after: server}\nexpect:")
    bench = Jittery(tmp_path, lab, jitter_ms)
    found = confirm(bench, 2, 0.05)
    assert len(bench.made) == runs
    assert found.judged[0].outcome == ("same" if runs == 2 else "changed")


class Jittery:
    """Runs of a lab with a flow of UDP, of which only the jitter is another one at the lab's own TDF."""

    def __init__(self, path: Path, lab: str, jitter_ms: float) -> None:
        self.path, self.lab, self.jitter_ms = path, lab, jitter_ms
        self.made: set[tuple[int, int]] = set()

    def measure(self, rung: int, repeat: int) -> Measured:
        if rung not in (0, 2):
            raise EnoughError("the search is another test's")
        path = self.path / f"{rung}-{repeat}"
        if not path.exists():
            self.made.add((rung, repeat))
            printed = text("udp.json")
            if rung == 0:
                printed = re.sub(r'"jitter_ms":.*', f'"jitter_ms": {self.jitter_ms},', printed)
            made.run_dir(path, self.lab, bulk=printed)
        return results_of(dilaton.load(path), 0.05)


def test_terminal_and_page_show_both_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made.run_dir(tmp_path)
    judged = Judged(0, 2, 5, "changed", (CHANGED, SAME), 0.008)
    outcome = confirmation(Confirmation((judged,), "40 runs were made"))
    verdict = verdict_of(outcome, VerdictRecord(level="valid", reasons=[]), [], is_adaptive=False)
    record = records.load(path).model_copy(update={"verdict": verdict, "confirmation": outcome})
    records.write(path, record)
    assert records.load(path) == record
    print_confirmation(record)
    shown = capsys.readouterr().out
    assert "TDF 5 beside TDF 20, 5 runs of each: changed" in shown
    assert "verdict: suspect" in shown and "no more runs were made: 40 runs were made" in shown
    page = write_report(dilaton.load(path), with_figures=False).read_text()
    for each in (shown, page):
        assert "937 Mbit/s" in each and "1.19 Gbit/s" in each and "21 %" in each
    assert 'href="2/4/run.json"' in page
