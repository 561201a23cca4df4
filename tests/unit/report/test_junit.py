"""A run as a report of JUnit."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from dilaton.report.junit import LINES_MAX, junit
from dilaton.run.loading import load
from dilaton.run.record.model import CheckRecord, ReasonRecord, VerdictRecord
from dilaton.run.record.record import Record
from dilaton.run.timeline import Moment, timeline
from tests.unit.measure import made


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """The record of a run in which all went well."""
    return load(made.run_dir(tmp_path)).record


def failures(record: Record, *, strict: bool = False) -> dict[str, str]:
    """What has failed, and why, by name."""
    suite = ElementTree.fromstring(junit(record, strict=strict))
    cases = suite.findall("testcase")
    failed = {case.get("name", ""): case.find("failure") for case in cases}
    found = {name: failure.get("message", "") for name, failure in failed.items() if failure is not None}
    assert (suite.get("tests"), suite.get("failures")) == (str(len(cases)), str(len(found)))
    return found


def test_a_case_is_there_for_each_process_and_expectation(record: Record) -> None:
    suite = ElementTree.fromstring(junit(record, strict=False))
    names = {case.get("name") for case in suite.findall("testcase")}
    assert {f"{process.node}/{process.name}" for process in record.processes} <= names
    assert {check.text for check in record.checks} <= names
    assert suite.get("time") == f"{record.time.virtual_s:.9f}"


def test_what_was_not_met_fails_with_what_was_measured(record: Record) -> None:
    checks = [CheckRecord(text="ping.rtt.avg < 40ms", passed=False, value=0.0412)]
    assert failures(record.model_copy(update={"checks": checks}))["ping.rtt.avg < 40ms"] == "measured: 41.2ms"


def test_a_process_that_failed_is_told_with_its_reason(record: Record) -> None:
    process = record.processes[-1].model_copy(update={"expected": False, "reason": "no route\x00\x1b to host"})
    found = failures(record.model_copy(update={"processes": [process]}))
    assert found[f"{process.node}/{process.name}"] == "no route\ufffd\ufffd to host"


def test_a_run_that_did_not_finish_is_a_failure(record: Record) -> None:
    found = failures(record.model_copy(update={"state": "failed", "reason": "guest0 was killed"}))
    assert found["the run finishes"] == "failed: guest0 was killed"


def test_a_verdict_fails_only_where_that_is_asked_for(record: Record) -> None:
    reason = ReasonRecord(level="suspect", what="busy", value=1, bound=0.9, unit="ratio", advice="raise tdf to 2")
    suspect = record.model_copy(update={"verdict": VerdictRecord(level="suspect", reasons=[reason])})
    name = "the results can be believed"
    assert name not in failures(suspect)
    assert failures(suspect, strict=True)[name] == "suspect; busy: raise tdf to 2"


def test_where_something_failed_the_last_that_happened_is_told(tmp_path: Path) -> None:
    run = load(made.run_dir(tmp_path))
    well = run.record.model_copy(update={"state": "finished", "checks": [], "processes": []})
    assert ElementTree.fromstring(junit(well, timeline(run), strict=False)).find("system-out") is None
    failed = run.record.model_copy(update={"state": "failed"})
    told = ElementTree.fromstring(junit(failed, timeline(run), strict=False)).findtext("system-out") or ""
    assert told.splitlines()[0] == "    0.000000 s  b/server started"
    assert told.splitlines()[-1] == "    1.500000 s  a/ping exited status 0"
    many = [Moment(number, 0, "a/p", f"line {number}", is_event=False) for number in range(LINES_MAX + 5)]
    told = ElementTree.fromstring(junit(failed, many, strict=False)).findtext("system-out") or ""
    assert told.splitlines()[0].endswith("a/p | line 5") and len(told.splitlines()) == LINES_MAX
