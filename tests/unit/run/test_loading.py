"""A run directory is loaded as tables; of one that failed there is what there is, and what is damaged is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dilaton
from dilaton.plan.common import FORMAT
from dilaton.run.record.record import RecordError
from tests.unit.measure import made


def test_samples_are_tables_with_rates(tmp_path: Path) -> None:
    run = dilaton.load(made.run_dir(tmp_path))
    sent = run.interfaces[run.interfaces.node == "a"]
    assert sent.t_s.iloc[:3].tolist() == [0.0, 0.1, 0.2]
    assert sent.tx_bit_per_s.isna().tolist() == [True] + [False] * 20
    assert sent.tx_bit_per_s.iloc[1:].round(3).unique().tolist() == [10_000_000.0]
    assert run.nodes.cpu_share.iloc[1:].round(9).unique().tolist() == [0.3]
    assert run.tcp.goodput_bit_per_s.iloc[1] == 12_500 * 8 / 0.01
    assert run.missing == []


def test_the_rates_of_a_connection_add_up_to_its_counters(tmp_path: Path) -> None:
    tcp = dilaton.load(made.run_dir(tmp_path)).tcp
    elapsed_s = tcp.t_s.diff()
    assert (tcp.goodput_bit_per_s * elapsed_s).sum() == pytest.approx(8 * tcp.bytes_acked.iloc[-1])
    assert (tcp.retransmit_per_s * elapsed_s).sum() == pytest.approx(tcp.retransmits_total.iloc[-1])
    assert tcp.retransmits_total.iloc[-1] == 3


def test_processes_checks_and_events_are_tables(tmp_path: Path) -> None:
    run = dilaton.load(made.run_dir(tmp_path))
    assert run.processes.name.tolist() == ["server", "ping"]
    assert run.checks.passed.tolist() == [True, True]
    assert run.events.kind.tolist() == ["started", "started", "exited"]
    assert run.events.t_s.tolist() == [0.0, 0.01, 1.5]
    assert "icmp_seq=3" in run.output("ping")


def test_a_notebook_shows_the_report_in_a_frame_that_executes_nothing(tmp_path: Path) -> None:
    run = dilaton.load(made.run_dir(tmp_path))
    assert "<code>dilaton report " in run._repr_html_()
    (run.path / "report.html").write_text('<p title="a">figures</p><script>harm()</script>')
    shown = run._repr_html_()
    assert shown.startswith('<iframe sandbox srcdoc="&lt;p title=&quot;a&quot;&gt;figures&lt;/p&gt;&lt;script')
    assert shown.count("<") == 2


def test_packets_and_flows_come_from_captures(tmp_path: Path) -> None:
    run = dilaton.load(made.run_dir(tmp_path))
    assert run.captures == ["a:eth0"]
    assert len(run.packets("a:eth0")) == 605 - 3 + 3
    flows = run.flows
    assert flows.flowId.tolist() == [1, 2]
    assert flows.sourceAddress.tolist() == ["10.0.0.0", "10.0.0.1"]
    assert flows.txPackets.iloc[0] == 304
    assert flows.rxPackets.isna().iloc[0], "nothing was captured at the other end"
    assert flows.rxPackets.iloc[1] == 301


def test_a_run_without_measure_has_empty_tables_with_their_columns(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    for file in [*path.glob("measure/*/*"), *path.glob("captures/*")]:
        file.unlink()
    run = dilaton.load(path)
    assert {"t_s", "tx_bit_per_s", "queue_bytes"} <= set(run.interfaces.columns)
    assert {"goodput_bit_per_s", "rtt_us"} <= set(run.tcp.columns)
    assert len(run.interfaces) == len(run.tcp) == len(run.nodes) == len(run.flows) == 0


def test_a_killed_run_gives_what_there_is_and_says_what_is_missing(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path, state="running", reason="not over yet")
    for name in ("events.jsonl", "measure/g0/tcp.csv", "captures/a.eth0.pcapng"):
        whole = (path / name).read_bytes()
        (path / name).write_bytes(whole[:-20])
    (path / "plan.json").unlink()
    run = dilaton.load(path)
    assert len(run.events) == 2
    assert len(run.tcp) == 199
    assert len(run.packets("a:eth0")) == 605
    assert run.plan is None
    assert [each.split(":")[0] for each in run.missing] == [
        "the run is not over, or was killed",
        "events.jsonl",
        "measure/g0/tcp.csv",
        "captures/a.eth0.pcapng",
        "plan.json",
    ]


def test_two_samplers_of_one_kind_make_one_table(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    (path / "measure/g1").mkdir()
    rows = [[n * 10**8, "c", 0, 0, 1, 0, 0] for n in range(3)]
    (path / "measure/g1/nodes.csv").write_text(made.csv(made.NODES, rows))
    assert dilaton.load(path).nodes.node.unique().tolist() == ["a", "c"]


def test_a_guest_in_which_there_was_nothing_to_sample_adds_no_rows(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    rows = len(dilaton.load(path).tcp)
    (path / "measure/g1").mkdir()
    (path / "measure/g1/tcp.csv").write_text(made.csv(made.TCP, []))
    assert len(dilaton.load(path).tcp) == rows > 0


@pytest.mark.parametrize(
    ("name", "contents", "said"),
    [
        ("run.json", "{", "damaged: not JSON"),
        ("plan.json", "{}", "plan.json: damaged: lab"),
        ("plan.json", '{"format": 1}', f"plan.json: format 1; this version of Dilaton reads format {FORMAT}"),
        ("events.jsonl", "no\n", "events.jsonl:1: damaged"),
        ("measure/g0/interfaces.csv", "t_ns,node\n1,a\n", "has no column interface"),
        ("measure/g0/interfaces.csv", "t_ns,node,interface,tx_bytes\n1,a,eth0,many\n", "tx_bytes has something that"),
        ("measure/g0/interfaces.csv", "t_ns,node,interface\n1,a,eth0,4,5\nx\n", "measure/\\*/interfaces.csv: damaged"),
        ("captures/a.eth0.pcapng", "what", "a.eth0.pcapng: not a pcapng file"),
    ],
)
def test_damage_is_told_with_its_place(tmp_path: Path, name: str, contents: str, said: str) -> None:
    path = made.run_dir(tmp_path)
    (path / name).write_text(contents)
    with pytest.raises(RecordError, match=said):
        read_all(path)


def read_all(path: Path) -> None:
    run = dilaton.load(path)
    assert run.plan is not None
    assert len(run.events) + len(run.interfaces) + len(run.packets("a:eth0"))


def test_what_is_no_run_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"not a run directory, since it has no run\.json"):
        dilaton.load(tmp_path)
    with pytest.raises(RecordError, match=r"c:eth0: no capture in .*; there is a:eth0"):
        dilaton.load(made.run_dir(tmp_path / "run")).packets("c:eth0")


def test_a_file_that_a_guest_made_lead_out_of_the_directory_is_not_read(tmp_path: Path) -> None:
    outside = made.run_dir(tmp_path / "other")
    path = made.run_dir(tmp_path / "run")
    capture = path / "captures/a.eth0.pcapng"
    capture.unlink()
    capture.symlink_to(outside / "captures/a.eth0.pcapng")
    for file in (path / "measure/g0").iterdir():
        file.unlink()
    (path / "measure/g0").rmdir()
    (path / "measure/g0").symlink_to(outside / "measure/g0")
    run = dilaton.load(path)
    with pytest.raises(RecordError, match="cannot be read"):
        run.packets("a:eth0")
    with pytest.raises(RecordError, match="leads out of the run directory"):
        assert run.interfaces is None


def test_a_pipe_in_the_place_of_a_capture_is_not_waited_for(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    (path / "captures/a.eth0.pcapng").unlink()
    os.mkfifo(path / "captures/a.eth0.pcapng")
    with pytest.raises(RecordError, match="not a plain file"):
        dilaton.load(path).packets("a:eth0")


def test_the_command_line_imports_none_of_the_tools_for_tables() -> None:
    code = "import sys, dilaton, dilaton.cli.labs.check, dilaton.cli.runs.run; print({'pandas', 'numpy', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ, PYTHONPATH=str(Path(dilaton.__file__).parents[1])),
    )
    assert done.stdout.strip() == "set()"
