"""The table at the end of a run, and the report, have what its programs measured in the whole run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dilaton.cli.runs.result import PROCESSES_SHOWN, print_result
from dilaton.plan.kinds.daemon import AGENT
from dilaton.report.page import write_report
from dilaton.run.loading import Run, load
from dilaton.run.record.words import outcome
from tests.unit.measure import made

LAB = f"""{made.LAB.partition("expect:")[0]}  - {{on: a, name: bulk, exec: iperf3 -c b -t 1 -J, after: server}}
expect: [bulk.throughput > 60Mbit, bulk.retransmits <= 3]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with a transfer of which three segments were sent again."""
    printed = json.loads((Path(made.__file__).parent / "results/fixtures/iperf3/tcp.json").read_text())
    printed["end"]["sum_sent"]["retransmits"] = 3
    return load(made.run_dir(tmp_path_factory.mktemp("run"), LAB, bulk=json.dumps(printed)))


def test_the_table_has_a_row_for_each_process_and_check(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.plan is not None
    print_result(run.plan, run.record, run.path)
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for expected in (
        "time TDF 10, work drive 2.000 s, in 20.0 s of host time",
        "a/ping ping -c 3 b RTT 20.2 ms (20.1 ms to 20.3 ms)",
        "a/bulk iperf3 -c b -t 1 -J 50.31 Mbit/s, 3 retransmitted",
        "check bulk.throughput > 60Mbit failed 50.31Mbit",
        "check bulk.retransmits <= 3 passed 3",
    ):
        assert expected in rows


def test_of_many_processes_those_are_shown_that_failed_or_measured(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    [server, ping, bulk] = run.record.processes
    daemons = [
        server.model_copy(update={"name": f"daemon-{number}", "expected": True}) for number in range(PROCESSES_SHOWN)
    ]
    fails = server.model_copy(update={"name": "last", "expected": False, "reason": "no such route"})
    record = run.record.model_copy(update={"processes": [*daemons, ping, bulk, fails]})
    assert run.plan is not None
    print_result(run.plan, record, run.path)
    told = capsys.readouterr().out
    assert "daemon" not in told and f"{len(daemons)} more processes" in told
    assert 0 < told.index("b/last") < told.index("no such route") < told.index("a/ping") < told.index("a/bulk")


def test_where_routing_was_waited_for_its_instant_is_shown_and_not_who_waited(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    waited = {"argv": [AGENT, "converged", "120"], "exit": 0, "expected": True, "end_s": 12.15}
    waiting = [
        run.record.processes[0].model_copy(update={"name": name} | waited) for name in ("r-converged", "converged")
    ]
    record = run.record.model_copy(update={"processes": [*run.record.processes, *waiting]})
    assert run.plan is not None
    print_result(run.plan, record, run.path)
    told = capsys.readouterr().out
    assert "converged at 12.15 s" in " ".join(told.split()) and told.count("converged") == 1


def test_of_a_process_that_measures_nothing_it_is_told_how_long_it_took(run: Run) -> None:
    ended = {"exit": 0, "expected": True, "start_s": 0.5, "end_s": 2.0, "result": None}
    assert outcome(run.record.processes[0].model_copy(update=ended)) == "done in 1.5 s"
    assert outcome(run.record.processes[0].model_copy(update=ended | {"stopped": True})) == "stopped"


def test_the_report_tells_the_same(run: Run) -> None:
    page = write_report(run, with_figures=False).read_text()
    for expected in ("RTT 20.2 ms (20.1 ms to 20.3 ms)", "<td>50.31 Mbit/s, 3 retransmitted</td>"):
        assert expected in " ".join(page.split())
