"""`dilaton validate link`: what the emulation of a link really does on this machine."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from dilaton.cli.errors import refusing
from dilaton.cli.runs.run import Shown, exit_status
from dilaton.cli.terminal import Output
from dilaton.host.here.doctor.doctor import require
from dilaton.lab import loads
from dilaton.lab.model import Lab
from dilaton.lab.text import syntax, units
from dilaton.measure.link_validation import Line, judge_delay, judge_rate, judge_tcp, lateness_ns
from dilaton.plan.compile import compile as compile_plan
from dilaton.run.execute import Options
from dilaton.run.files.directory import RunDir, RunDirError, take_default
from dilaton.run.record.record import Record
from dilaton.run.source import Source
from dilaton.service.conduct import executed

PROBES = 5000
PROBE_BYTES = 100
PROBE_GAP_NS = 60_000
PACKETS = 3000
PACKET_BYTES = 1500
PYTHON = Path(sys.executable).resolve()
"""Not the environment's own, which nodes do not see when it is below /tmp."""

FAST_BIT_PER_S = 10**9
FAST_PACKETS, FAST_S = 100_000, 0.1
"""What TCP sends over a fast link: so many packets, and for so long at least."""
TCP_QUEUE = 10_000
"""Packets, more than TCP's window: where some are lost, the timeout of one, 200 ms, can be what is measured."""

NAME = "validate-link"


def lab_text(rate: str | None, delay: str, tdf: str, drive: str) -> str:
    """The lab: probes at random instants over a link without a rate, a flood and TCP over links with it."""
    program = [str(PYTHON), "-c", (Path(__file__).parent / "probe.py").read_text()]
    probe = [*program, "send", "b", str(PROBES), str(PROBE_BYTES), str(PROBE_GAP_NS), "1"]
    lines = [
        f"name: {NAME}",
        f"time: {{drive: {drive}, tdf: {tdf}}}",
        "nodes: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}",
        "links:",
        f"  - {{endpoints: a -- b, a_to_b: {{delay: {delay}}}}}",
        *(f"  - {{endpoints: {ends}, rate: {rate}, queue: {{limit: {PACKETS}}}}}" for ends in ("c -- d",) if rate),
        *(f"  - {{endpoints: {ends}, rate: {rate}, queue: {{limit: {TCP_QUEUE}}}}}" for ends in ("e -- f",) if rate),
        "run:",
        f"  - {{on: b, name: sink, exec: {json.dumps([*program, 'receive'])}, ready: {{output: ready}}}}",
        f"  - {{on: a, name: probe, exec: {json.dumps(probe)}, after: sink}}",
    ]
    if rate:
        flood = [*program, "send", "d", str(PACKETS), str(PACKET_BYTES), "0", "1"]
        receive = json.dumps([*program, "receive"])
        lines += [
            f"  - {{on: d, name: drain, exec: {receive}, ready: {{output: ready}}, after: probe}}",
            f"  - {{on: c, name: flood, exec: {json.dumps(flood)}, after: drain}}",
            "  - {on: f, name: server, exec: iperf3 -s, ready: {tcp: 5201}, background: true, after: flood}",
            f"  - {{on: e, name: tcp, exec: iperf3 -c f {_tcp_length(rate)} -J, after: server}}",
        ]
    return "\n".join(lines) + "\n"


def _tcp_length(rate: str) -> str:
    """How long iperf3 sends: seconds, since TCP takes time to settle; on fast links so many bytes, which take less."""
    bit_per_s = units.parse_link_rate(rate)
    if bit_per_s < FAST_BIT_PER_S:
        return "-t 4 -O 2"
    return f"-n {max(FAST_PACKETS * PACKET_BYTES, int(bit_per_s * FAST_S / 8))}"


def validate_link(rate: str | None, delay: str, tdf: str, drive: str, out: Path | None) -> int:
    """Runs the lab, prints what was configured and measured, draws it; returns the exit status.

    Raises:
        HostLacksError: when this machine cannot run guests.
    """
    _check(rate, delay, tdf, drive)
    with refusing(RunDirError):
        text = lab_text(rate, delay, tdf, drive)
        lab = loads(text, NAME)
        require(jailed=True)
        run_dir = RunDir(out or take_default(lab.name))
    record = asyncio.run(executed(compile_plan(lab), Source(lab, text), run_dir, Options(), Shown()))
    if exit_status(record):
        print(f"not measured: {record.reason or 'a probe failed'}; see {run_dir.path}", file=sys.stderr)
        return 1
    late = _lateness(lab, run_dir.path)
    lines = judge_delay(late, lab.links[0].direction("a_to_b").delay_ns, float(lab.time.tdf))
    if rate:
        lines += _rates(lab, record, run_dir.path)
    _print(lines)
    print(f"figure:             {_draw(late, run_dir.path)}")
    return 0 if all(line.holds for line in lines) else 1


def _check(rate: str | None, delay: str, tdf: str, drive: str) -> None:
    """Reads the options by themselves, so that a mistake is told of the option and not of a lab that nobody wrote.

    Raises:
        BadInputError: one cannot be read.
    """
    readers: dict[str, tuple[str | None, Callable[[str], object]]] = {
        "--rate": (rate, units.parse_link_rate),
        "--delay": (delay, lambda text: units.parse_duration(text, "a delay", units.DELAY_MAX)),
        "--tdf": (tdf, units.parse_tdf),
        "--drive": (drive, syntax.parse_drive),
    }
    for option, (text, read) in readers.items():
        if text is not None:
            with refusing(ValueError, option=option):
                read(text)


def _stamps(path: Path, node: str, process: str) -> dict[int, int]:
    return dict(json.loads((path / "nodes" / node / f"{process}.stdout").read_text().splitlines()[-1]))


def _lateness(lab: Lab, path: Path) -> list[int]:
    return lateness_ns(
        _stamps(path, "a", "probe"), _stamps(path, "b", "sink"), lab.links[0].direction("a_to_b").delay_ns
    )


def _rates(lab: Lab, record: Record, path: Path) -> list[Line]:
    rate = lab.links[1].rate_bit_per_s
    assert rate is not None, "the second link has a rate"
    tcp = next(process.result or {} for process in record.processes if process.name == "tcp")
    received = sorted(_stamps(path, "d", "drain").values())
    return [
        *judge_rate(received, PACKET_BYTES, rate),
        judge_tcp(tcp["throughput"], lab.links[2].mtu, rate),
    ]


def _print(lines: list[Line]) -> None:
    table = Table("", "configured", "measured", "bound", "", box=box.SIMPLE)
    for line in lines:
        mark = Text("holds", style="green") if line.holds else Text("does not hold", style="bold red")
        table.add_row(line.what, line.configured, line.measured, line.bound, mark)
    Output().print(table)


def _draw(late: list[int], path: Path) -> Path:
    from dilaton.report.export import save
    from dilaton.report.figures.distributions import ecdfs

    caption = f"How much later than its delay each of {len(late)} probes arrived, sent at random instants."
    drawing = ecdfs("latency", "Emulated latency", caption, {"probes": [ns / 1e9 for ns in late]}, "lateness", "s")
    return save(drawing, path / "latency.svg")
