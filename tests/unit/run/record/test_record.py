"""The run record is whole at every moment, says what happened, and is refused where it is not one."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dilaton.host.messages import Event, OfProcess
from dilaton.lab import loads
from dilaton.measure.reasons import WRITE_CPU
from dilaton.measure.waiting.together import Life
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.network.bounds import Network
from dilaton.run.files.outputs import read_output
from dilaton.run.record import fidelity as fidelities
from dilaton.run.record import record as records
from dilaton.run.record.events import event_of
from dilaton.run.record.model import (
    Adaptation,
    BusyRecord,
    ContentionRecord,
    Fidelity,
    FramesRecord,
    GuestFidelity,
    LatenessRecord,
    ProcessRecord,
    SharesRecord,
    StretchRecord,
)
from dilaton.run.record.observation import NOTHING_BESIDE
from dilaton.run.record.processes import processes_from_events
from dilaton.run.record.programs import Programs, lives_of
from dilaton.run.schema import schema_text
from tests.unit.measure.made import pcapng, plan, so_far, transfer

ROOT = Path(__file__).resolve().parents[4]

PLAN = compile_plan(
    loads(
        """
name: lab
time: {tdf: 1/3}
nodes: {a: {}}
run:
  - {on: a, exec: ping -c 1 b}
  - {on: a, name: sh, exec: sh, after: ping}
expect: [ping.rtt.avg < 1ms, ping.loss == 0%, sh.exit == 0]
""",
        "lab.yaml",
    )
)

PINGED = """1 packets transmitted, 1 received, 0% packet loss, time 0ms
rtt min/avg/max/mdev = 40.000/40.000/40.000/0.000 ms
"""


def event(kind: str, process: str = "ping", t_ns: int = 0, **fields: Any) -> Event:
    found = event_of({"t_ns": t_ns, "kind": kind, "process": process, "node": "a", **fields})
    assert isinstance(found, OfProcess)
    return found


def started(t_ns: int = 0, process: str = "ping") -> Event:
    return event("started", process, t_ns, pid=7)


def exited(t_ns: int = 2 * 10**9, process: str = "ping", **fields: Any) -> Event:
    how = {} if "signal" in fields else {"status": 0}
    ended = how | {"expected": True, "timed_out": False, "stopped": False}
    return event("exited", process, t_ns, **(ended | fields))


def finished(tmp_path: Path, **fields: Any) -> records.Record:
    output = tmp_path / PLAN.processes[0].stdout
    output.parent.mkdir(parents=True)
    output.write_text(PINGED)
    events = [started(10**9), exited(), started(2 * 10**9, "sh"), exited(3 * 10**9, "sh")]
    return records.make(PLAN, so_far(events=events, **fields), tmp_path)


def test_a_finished_run_has_results_and_checks(tmp_path: Path) -> None:
    record = finished(tmp_path)
    ping, sh = record.processes
    assert (ping.start_s, ping.end_s, ping.exit, ping.expected, ping.outcome) == (1.0, 2.0, 0, True, "exited")
    assert ping.result is not None and ping.result["rtt"]["avg"] == 0.04
    assert sh.result is None
    assert [(check.passed, check.value) for check in record.checks] == [(False, 0.04), (True, 0.0), (True, 0)]


def test_a_run_that_goes_on_has_neither(tmp_path: Path) -> None:
    record = finished(tmp_path, state="running")
    assert record.checks == []
    assert [process.result for process in record.processes] == [None, None]


def test_a_run_that_never_started_has_no_checks(tmp_path: Path) -> None:
    record = records.make(PLAN, so_far(state="failed", reason="no kernel"), tmp_path)
    assert record.checks == []
    assert [process.outcome for process in record.processes] == ["not-started", "not-started"]


def test_a_record_survives_writing_and_reading(tmp_path: Path) -> None:
    record = finished(tmp_path)
    records.write(tmp_path, record)
    assert records.load(tmp_path) == record


def test_what_is_written_is_as_the_schema_says(tmp_path: Path) -> None:
    schema = json.loads(schema_text())
    records.write(tmp_path, finished(tmp_path))
    written = json.loads((tmp_path / "run.json").read_text())
    jsonschema.validate(written, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written | {"state": "resting"}, schema)


def test_the_published_schema_is_current() -> None:
    """To write it anew: `python -m dilaton.run.schema > docs/run.schema.json`."""
    assert (ROOT / "docs" / "run.schema.json").read_text() == schema_text()


def test_a_write_that_fails_leaves_the_record_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records.write(tmp_path, finished(tmp_path))
    before = (tmp_path / "run.json").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        records.write(tmp_path, records.make(PLAN, so_far(state="failed"), tmp_path))
    assert (tmp_path / "run.json").read_bytes() == before


def test_writing_never_goes_through_a_link_that_a_guest_left(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    for name in ("run.json", ".run.json.part"):
        (run_dir / name).symlink_to(outside)
    records.write(run_dir, records.make(PLAN, so_far(), run_dir))
    assert outside.read_text() == "mine"
    assert sorted(path.name for path in run_dir.iterdir()) == ["run.json"]
    assert not (run_dir / "run.json").is_symlink()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged: not JSON"),
        ("[" * 100_000, "damaged: not JSON"),
        ("[]", "not a run record of Dilaton"),
        ("{}", "not a run record of Dilaton"),
        ('{"format": 2}', "format 2; this version of Dilaton reads format 1"),
        ('{"format": 1, "lab": 3}', "damaged: lab:"),
    ],
)
def test_what_is_no_record_is_refused_by_name(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(records.RecordError) as caught:
        records.load(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/run.json: {message}")


def test_the_name_of_a_lab_leads_to_its_last_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "wan-20260101T000000Z-1").mkdir(parents=True)
    with pytest.raises(
        records.RecordError, match=r"no such directory; the last run of it is in runs/wan-20260101T000000Z-1$"
    ):
        records.load(Path("wan"))
    (tmp_path / "sweeps" / "wan").mkdir(parents=True)
    with pytest.raises(records.RecordError, match=r"00Z-1; the sweep of it is in sweeps/wan$"):
        records.load(Path("wan"))


def test_a_directory_without_a_record_and_a_file_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(records.RecordError, match=r"not a run directory, since it has no run\.json"):
        records.load(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(records.RecordError, match="not a directory"):
        records.load(tmp_path / "file")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], {"outcome": "not-started", "expected": False}),
        ([started()], {"outcome": "running", "start_s": 0.0, "ready_s": None, "end_s": None, "expected": False}),
        (
            [event("start-failed", reason="exec x: no")],
            {"outcome": "start-failed", "reason": "exec x: no", "start_s": None},
        ),
        ([event("skipped", reason="a failed")], {"outcome": "skipped", "reason": "a failed", "expected": False}),
        ([started(), exited(status=3, expected=False)], {"outcome": "exited", "exit": 3, "expected": False}),
        (
            [started(), exited(signal=11, expected=False)],
            {"outcome": "signalled", "exit": None, "signal": 11, "expected": False},
        ),
        (
            [started(), exited(signal=15, expected=False, timed_out=True)],
            {"outcome": "signalled", "reason": "timed out", "expected": False},
        ),
        (
            [started(), event("ready", t_ns=10**9), exited(signal=15, stopped=True)],
            {"outcome": "signalled", "signal": 15, "expected": True, "reason": None, "ready_s": 1.0},
        ),
        (
            [started(), event("ready-timeout", reason="no listener within 2 s"), exited(stopped=True)],
            {"outcome": "exited", "expected": False, "reason": "not ready: no listener within 2 s"},
        ),
    ],
)
def test_events_tell_what_became_of_a_process(events: list[Event], expected: dict[str, Any]) -> None:
    record = processes_from_events(PLAN, events)[0].model_dump()
    assert {name: record[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [("warning\nno such file\n\n", "no such file"), ("", None), ("x " * 200, "x " * 98 + "x …")],
)
def test_a_process_that_failed_has_its_last_words(stderr: str, reason: str | None) -> None:
    def read(path: str) -> str:
        return stderr if path.endswith("stderr") else PINGED

    failed, late, fine = (
        processes_from_events(PLAN, [started(), end], read)[0]
        for end in (exited(status=3, expected=False), exited(expected=False, timed_out=True), exited())
    )
    assert (failed.reason, late.reason, fine.reason) == (reason, "timed out", None)


def test_outputs_are_read_only_from_plain_files(tmp_path: Path) -> None:
    plain, link, pipe = (tmp_path / name for name in ("plain", "link", "pipe"))
    plain.write_bytes(b"ok \xff")
    link.symlink_to(plain)
    os.mkfifo(pipe)
    assert read_output(plain) == "ok \ufffd"
    assert [read_output(path) for path in (link, pipe, tmp_path, tmp_path / "none")] == ["", "", "", ""]


def test_a_run_that_kept_time_badly_has_a_verdict_with_reasons(tmp_path: Path) -> None:
    late = LatenessRecord(p50=0, p99=1.0, p999=1.0, max=50_000.0)
    fidelity = Fidelity(lateness_us=late, timers=100, reads=1, lateness_ns_counts=[100], busy=0.95)
    verdict = finished(tmp_path, fidelity=fidelity).verdict
    assert verdict is not None
    assert verdict.level == "suspect"
    assert [reason.unit for reason in verdict.reasons] == ["us", "ratio"]


def test_a_run_without_fidelity_has_no_verdict(tmp_path: Path) -> None:
    assert finished(tmp_path).verdict is None


def test_what_was_not_observed_is_in_the_verdict_and_what_observing_took_in_the_record(tmp_path: Path) -> None:
    late = LatenessRecord(p50=0, p99=1.0, p999=1.0, max=1.0)
    fidelity = Fidelity(lateness_us=late, timers=100, reads=1, lateness_ns_counts=[100], busy=0.5)
    for folder in ("captures", "measure/guest0"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "captures/a.eth0.pcapng").write_bytes(pcapng(transfer(9), dropped=4))
    (tmp_path / "captures/b.eth0.pcapng").write_bytes(pcapng(transfer(9), dropped=0))
    (tmp_path / "captures/c.eth0.pcapng").write_bytes(pcapng(transfer(9), dropped=None))
    sampler = "t_ns,kind,cpu_ns,count,late_ns,missed\n0,tcp,10,1,5,0\n30,tcp,10,1,5,2\n40,tcp,1"
    (tmp_path / "measure/guest0/sampler.csv").write_text(sampler)
    record = finished(tmp_path, fidelity=fidelity)
    verdict = record.verdict
    assert verdict is not None
    assert record.fidelity is not None
    assert record.fidelity.measuring_share == pytest.approx(20e-9 / (record.time.virtual_s * 0.5))
    assert [reason.what.split(":")[0] for reason in verdict.reasons] == [
        "the capture of a",
        "2 samples could not be taken",
    ]


GUESTS = """
name: two
nodes: {{a: {{guest: x}}, b: {{guest: x}}, c: {{guest: y{cpu}}}}}
links: [{{endpoints: [a, b], delay: 1ms}}, {{endpoints: [b, c], delay: 1ms}}]
guests: {{x: {{tdf: 2}}{y}}}
"""


@pytest.mark.parametrize(
    ("cpu", "y", "advice"),
    [
        ("", "", ("write guests: {x: {tdf: 5}}", "raise tdf to 2")),
        (
            ", cpu: 2",
            "",
            ("write guests: {x: {tdf: 5}}", "write guests: {y: {tdf: 5}} or, where c has a cpu, cpu: 5 there"),
        ),
        (
            "",
            ", y: {tdf: 2}",
            ("write guests: {x: {tdf: 5}}", "write guests: {y: {tdf: 5}} or, where c has a cpu, cpu: 5 there"),
        ),
    ],
)
def test_the_advice_for_a_guest_names_the_line_that_its_tdf_comes_from(cpu: str, y: str, advice: Sequence[str]) -> None:
    planned = compile_plan(loads(GUESTS.format(cpu=cpu, y=y), "lab.yaml"))
    busy = GuestFidelity(
        lateness_us=LatenessRecord(p50=0, p99=0, p999=0, max=0),
        timers=0,
        reads=0,
        lateness_ns_counts=[0] * 64,
        busy=0.95,
    )
    verdict = records.judge_fidelity(planned, [busy, busy], 1.0, None, NOTHING_BESIDE)
    assert [reason.advice for reason in verdict.reasons] == [
        f"{line}, {WRITE_CPU}, or do less in the lab" for line in advice
    ]


def test_late_frames_are_judged_by_the_links_on_which_they_came_and_name_the_guest_that_got_them() -> None:
    lab = """
name: two
nodes: {a: {guest: x}, b: {guest: x}, c: {guest: y}}
links: [{endpoints: [a, b], delay: 100us}, {endpoints: [b, c], a_to_b: {delay: 40ms}, b_to_a: {delay: 1ms}}]
"""
    planned = compile_plan(loads(lab, "lab.yaml"))
    counts = [990, *[0] * 14, 10, *[0] * 48]
    on_time = LatenessRecord(p50=0, p99=0, p999=0, max=0)
    late = FramesRecord(received=1000, lateness_us=on_time.model_copy(update={"max": 30.0}), lateness_ns_counts=counts)
    later = late.model_copy(update={"lateness_ns_counts": [900, *[0] * 14, 100, *[0] * 48]})
    quiet = GuestFidelity(lateness_us=on_time, timers=0, reads=0, lateness_ns_counts=[0] * 64)

    def reasons(x: FramesRecord | None, y: FramesRecord | None) -> list[str]:
        guests = [quiet.model_copy(update={"frames": frames}) for frames in (x, y)]
        return [one.what for one in records.judge_fidelity(planned, guests, 1.0, None, NOTHING_BESIDE).reasons]

    assert reasons(None, None) == reasons(late, later) == [], "a hundredth may be, and y hears over 40 ms"
    assert reasons(later, None) == [], "3 % of the delay"
    latest = late.model_copy(
        update={
            "lateness_us": on_time.model_copy(update={"max": 130.0}),
            "lateness_ns_counts": [900, *[0] * 16, 100, *[0] * 46],
        }
    )
    (what,) = reasons(latest, None)
    assert what.startswith("guest x: 1 % of frames from other guests were later than")
    assert "of the delay of c:eth0" in what


@pytest.mark.parametrize(
    ("programs", "what"),
    [
        ("ping a", "of the delay of c:eth0"),
        # 20 of 40 ms are for each of the two wires of that way.
        ("ping far", ""),
        ("ping far; ping a", "of the delay of c:eth0"),
        ("ping elsewhere", "of the delay of c:eth0"),
    ],
)
def test_late_frames_are_judged_by_the_paths_that_lead_over_their_wires(programs: str, what: str) -> None:
    lab = f"""
name: three
nodes: {{a: {{guest: x}}, c: {{guest: y}}, far: {{guest: z}}, near: {{guest: x}}, elsewhere: {{guest: x}}}}
links:
  - {{endpoints: [a, c], delay: 100us}}
  - {{endpoints: [a, far], delay: 40ms}}
  - {{endpoints: [near, elsewhere], delay: 100us}}
run: [{{on: {"near" if "elsewhere" in programs else "c"}, exec: [sh, -c, {programs}]}}]
"""
    planned = compile_plan(loads(lab, "lab.yaml"))
    on_time = LatenessRecord(p50=0, p99=0, p999=0, max=0)
    quiet = GuestFidelity(lateness_us=on_time, timers=0, reads=0, lateness_ns_counts=[0] * 64)
    counts = [900, *[0] * 16, 100, *[0] * 46]
    late = FramesRecord(received=1000, lateness_us=on_time.model_copy(update={"max": 130.0}), lateness_ns_counts=counts)
    verdict = records.judge_fidelity(
        planned, [quiet.model_copy(update={"frames": late}), quiet, quiet], 1.0, None, NOTHING_BESIDE
    )
    assert [what in reason.what for reason in verdict.reasons] == ([True] if what else [])


def test_frames_of_all_guests_are_taken_together() -> None:
    on_time = LatenessRecord(p50=0, p99=0, p999=0, max=0)

    def guest(*bins: int, max_us: float) -> GuestFidelity:
        lateness = on_time.model_copy(update={"max": max_us})
        frames = FramesRecord(received=sum(bins), lateness_us=lateness, lateness_ns_counts=[*bins, 0, 0])
        return GuestFidelity(lateness_us=on_time, timers=0, reads=0, lateness_ns_counts=[0], frames=frames)

    found = fidelities.together([guest(5, 1, max_us=0.001), guest(7, 0, max_us=0)], [], None).frames
    assert found is not None
    assert (found.received, found.lateness_ns_counts, found.lateness_us.max) == (13, [12, 1, 0, 0], 0.001)


def test_a_run_that_was_out_of_bounds_for_long_says_so_in_its_verdict() -> None:
    planned = plan("name: x\nnodes: {a: }\ntime: {tdf: auto}\n")
    idle = GuestFidelity(lateness_us=LatenessRecord(p50=0, p99=0, p999=0, max=0), timers=0, reads=0, busy=0.5)
    watched = Adaptation(
        policy="pads15", epochs=100, tdf_mean=2, out_of_bounds_share=0.26, out_of_bounds=[], tdf_needed=None
    )
    (reason,) = records.judge_fidelity(planned, [idle], 10.0, watched, NOTHING_BESIDE).reasons
    assert reason.what == "fidelity was out of bounds for 26 % of virtual time, judged epoch by epoch"


BESIDE = """
name: two
nodes: {a: {cpu: 0.1}, b: , c: }
links: [{endpoints: a -- b, delay: 5ms}, {endpoints: a -- c, delay: 5ms}]
run:
  - {on: a, name: flow, exec: iperf3 -c b}
  - {on: b, name: pings, exec: ping -c 5 a}
  - {on: a, name: other, exec: curl http://c/}
  - {on: b, name: server, exec: iperf3 -s, background: true}
"""


def test_a_program_is_late_by_what_it_waited_of_its_time_beside_others_and_by_what_its_node_lost_of_its_life() -> None:
    planned = compile_plan(loads(BESIDE, "lab.yaml"))
    times = {"flow": (1.0, 6.0), "pings": (1.5, 2.0), "other": (0.0, 0.1), "server": (0.0, 6.0)}
    processes = [
        ProcessRecord(
            name=process.name,
            node=process.node,
            argv=[],
            start_s=times[process.name][0],
            end_s=times[process.name][1],
            exit=0,
        )
        for process in planned.processes
    ]
    lives = lives_of(planned, processes)
    assert [(life.process, life.is_background, len(life.way)) for life in lives] == [
        ("flow", False, 2),
        ("pings", False, 2),
        ("other", False, 2),
        ("server", True, 0),
    ]
    failed = [each.model_copy(update={"exit": 1, "stopped": each.name == "server"}) for each in processes]
    assert [life.process for life in lives_of(planned, failed)] == ["server"]
    refused = [each.model_copy(update={"result": {"error": "Connection refused"}}) for each in processes]
    assert lives_of(planned, refused) == []

    nothing = [0] * 64
    guest = GuestFidelity(
        lateness_us=LatenessRecord(p50=0, p99=0, p999=0, max=0),
        timers=0,
        reads=0,
        lateness_ns_counts=nothing,
        busy_periods=BusyRecord(
            ns_counts=nothing, ns_totals=nothing, interrupts=nothing, longest_ns=0, idle_ns_totals=nothing
        ),
        contention=ContentionRecord(
            ns_counts=nothing,
            ns_totals=nothing,
            interrupts=nothing,
            longest_ns=60_000_000,
            longest=[StretchRecord(begin_s=1.6, end_s=1.66)],
        ),
        shares=SharesRecord(charged_s=0.01, uncharged_s=0, busy_s=0.05, lost_s=0.006),
    )

    def said(lives: Sequence[Life]) -> list[str]:
        verdict = records.judge_fidelity(planned, [guest], 6.0, None, NOTHING_BESIDE, Programs(lives=lives))
        return [reason.what for reason in verdict.reasons]

    waited, lost = said(lives)
    assert "waited for the CPU for 60 ms, 6 % of the time that b/pings looked at beside others" in waited
    assert lost.startswith("nodes with a cpu did not get 6 % of it"), "of a tenth of a second that curl lived"
    assert said([life for life in lives if life.process != "other"]) == [waited]
    assert said(lives[:1]) == []


def test_the_programs_that_start_in_a_guest_are_those_of_its_nodes() -> None:
    run = "[{on: a, exec: sleep 1}, {on: a, exec: cat}, {on: b, exec: sh}]"
    planned = plan(
        f"name: x\nnodes: {{a: , b: }}\nguests: per-node\nlinks: [{{endpoints: a -- b, delay: 1ms}}]\nrun: {run}\n"
    )
    nothing = [0] * 64
    late = [0] * 23 + [45] + [0] * 40
    guest = GuestFidelity(
        lateness_us=LatenessRecord(p50=0, p99=0, p999=0, max=0),
        timers=0,
        reads=0,
        busy_periods=BusyRecord(
            ns_counts=nothing, ns_totals=nothing, interrupts=nothing, longest_ns=0, idle_ns_totals=nothing
        ),
        contention=ContentionRecord(
            ns_counts=nothing, ns_totals=nothing, interrupts=nothing, longest_ns=0, jobs_ns_counts=late
        ),
    )
    patient = Network(wait_ns_max=1_000_000, wait_path="a and b", wait_why="a round trip takes 4 ms")
    verdict = records.judge_fidelity(planned, [guest, guest], 6.0, None, NOTHING_BESIDE, networks=lambda _: patient)
    (reason,) = verdict.reasons
    assert reason.what.startswith("guest b: 77.8 % of what programs were woken up for took them"), "of two all may"
