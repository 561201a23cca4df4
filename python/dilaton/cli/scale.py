"""`dilaton scale`: a lab of many machines on few guests, with what it will cost, and a lab file ready to run."""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table
from ruamel.yaml import YAML

from dilaton.cli.check import Overrides, lab_file, read_lab
from dilaton.cli.errors import PROGRAM, BadInputError, refusing
from dilaton.cli.terminal import Output
from dilaton.host.doctor import require
from dilaton.host.processes import OURSELVES, ending_with_us
from dilaton.lab import units
from dilaton.lab.errors import LabError
from dilaton.lab.loader import load, locate, read
from dilaton.lab.model import Lab
from dilaton.plan.scale import Proposal, machines, nodes_per_guest_max, propose
from dilaton.run import machine, record
from dilaton.run.record import RecordError

PILOT_SHARE = 10
"""The pilot is the first part of the run, one in so many, or more if programs begin late, unless it is given."""

PILOT_HINT = "--pilot: give a longer one, in which all programs start and all changes come, or 0s for none"

LINE_CHARACTERS_MAX = 10_000
"""Of the scaled lab, so that no line of the lab is broken."""


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    path: Path
    machines: int | None
    onto: int
    out: Path | None
    duration: str | None
    pilot: str | None


@dataclass(frozen=True)
class Pilot:
    """What the beginning of a run took."""

    virtual_s: float
    host_s: float
    boot_host_s: float
    pace: float
    """Host seconds per virtual second, of the second half, when programs have started."""

    def host_s_of(self, virtual_s: float) -> float:
        """What a run of that virtual duration will take from its start to its end."""
        return self.boot_host_s + self.host_s + self.pace * max(0.0, virtual_s - self.virtual_s)


def scale_lab(request: Request) -> int:
    """Scales a lab down and shows what that means; returns the exit status.

    Raises:
        HostLacksError: this machine cannot run guests.
    """
    with refusing(RecordError, OSError):
        lab, proposal = _propose(request)
        duration_ns = _duration(request.duration, "--duration") or lab.stop_after_ns
        pilot_ns = _duration(request.pilot, "--pilot")
        source = lab_file(request.path)
        target = request.out or source.with_name(f"{source.stem}-onto-{request.onto}.yaml")
        write_scaled(source, lab, proposal.tdf, request.onto, target)
        read_lab(target, Overrides())
        pilot = None
        if pilot_ns != 0 and (pilot_ns or duration_ns):
            require(jailed=True)
            pilot = run_pilot(target, pilot_ns or pilot_duration(lab, duration_ns or 0))
    show(lab, proposal, request.onto, duration_ns, pilot)
    print(f"ready to run: {target}")
    return 0


def _check_count(lab: Lab, wanted: int | None) -> None:
    count = len(machines(lab))
    if wanted not in (None, count):
        raise BadInputError(
            f"--machines {wanted}: the lab has {count}, its hosts; write as many into it, as topology: {{generate: "
            f"star, leaves: {wanted}}} does, or leave --machines out"
        )


def _propose(request: Request) -> tuple[Lab, Proposal]:
    """The lab, which need not be able to run as it is, and how it is scaled."""
    path = lab_file(request.path)
    lab = load(path, [("guests", "1")], machine.core_ghz())
    _check_count(lab, request.machines)
    try:
        return lab, propose(lab, request.onto, machine.for_plans())
    except LabError as error:
        if too_many := [problem.message for problem in error.problems if problem.field == "guests"]:
            # Of which the command line says how many there are, not the lab.
            raise BadInputError(f"--onto: {too_many[0]}") from error
        raise locate(error, read(path), str(path)) from error


def _duration(text: str | None, option: str) -> int | None:
    with refusing(ValueError, option=option):
        return None if text is None else units.parse_duration(text)


def pilot_duration(lab: Lab, duration_ns: int) -> int:
    """How much of a run shows what it costs, in nanoseconds: all that has an instant begins in the first half."""
    instants = [process.start_ns for process in lab.run] + [change.at_ns for change in lab.changes]
    return min(duration_ns, max(duration_ns // PILOT_SHARE, 2 * max(instants, default=0)))


def write_scaled(path: Path, lab: Lab, tdf: int, onto: int, target: Path) -> None:
    """Writes the lab of `path`, scaled, to `target`, which is beside it: paths in it start there.

    Raises:
        BadInputError: `target` is elsewhere, or the lab itself.
        OSError: It cannot be written.
    """
    if target.resolve().parent != path.resolve().parent or target.resolve() == path.resolve():
        raise BadInputError(f"{target}: must be another file beside {path}, since paths in it start there")
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = LINE_CHARACTERS_MAX
    data: Any = yaml.load(path.read_text())
    data["guests"] = onto
    data["time"] = {**(data.get("time") or {}), "drive": "work", "tdf": tdf}
    data["time"].pop("auto", None)
    nodes = data.setdefault("nodes", {})
    for name in machines(lab):
        if lab.nodes[name].cpu is None:
            nodes[name] = {**(nodes.get(name) or {}), "cpu": 1}
        if nodes.get(name):
            nodes[name].pop("guest", None)
    with target.open("w") as file:
        yaml.dump(data, file)


def run_pilot(path: Path, virtual_ns: int) -> Pilot:
    """Runs the beginning of a lab, and says what it took.

    Raises:
        BadInputError: It did not run.
    """
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "pilot"
        command = [*OURSELVES, "run", str(path), "--out", str(out)]
        command += ["--set", f"stop_after={units.format_duration(virtual_ns)}"]
        print(f"pilot: the first {units.format_duration(virtual_ns)} …", file=sys.stderr)
        done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=ending_with_us())
        try:
            found = record.load(out)
        except RecordError as error:
            said = (done.stderr or done.stdout).strip().removeprefix(PROGRAM)
            raise BadInputError(f"the pilot did not run: {said}\n{PILOT_HINT}") from error
        if found.state != "finished":
            raise BadInputError(f"the pilot {found.state}: {found.reason}")
        with (out / "clock.csv").open() as file:
            rows = [(float(row["virtual_s"]), float(row["host_s"])) for row in csv.DictReader(file)]
    time = found.time
    return Pilot(time.virtual_s, time.host_s, time.boot_host_s, pace_of(rows, time.virtual_s))


def pace_of(rows: Sequence[tuple[float, float]], end_s: float) -> float:
    """Host seconds per virtual second in the second half of a run.

    Args:
        rows: Instants of virtual and of host time, both growing; at the end host time may go on alone.
        end_s: When virtual time ended.
    """
    instants = [(0.0, 0.0), *rows]
    halfway = _host_s_at(instants, end_s / 2)
    return (_host_s_at(instants, end_s) - halfway) / (end_s / 2)


def _host_s_at(instants: Sequence[tuple[float, float]], virtual_s: float) -> float:
    """The host time when virtual time came there, on a line between the instants around it."""
    for (before_s, before_host_s), (after_s, after_host_s) in pairwise(instants):
        if before_s < virtual_s <= after_s:
            return before_host_s + (after_host_s - before_host_s) * (virtual_s - before_s) / (after_s - before_s)
    return instants[-1][1]


def show(lab: Lab, proposal: Proposal, onto: int, duration_ns: int | None, pilot: Pilot | None) -> None:
    """Prints the proposal."""
    rows = Table(box=None, pad_edge=False, show_header=False)
    rows.add_column(overflow="fold")
    rows.add_column(overflow="fold")
    count, cores = len(proposal.cpus), machine.for_plans().cores
    most, bound = nodes_per_guest_max(lab)
    rows.add_row("machines", f"{count} onto {onto} guests: at most {proposal.machines_per_guest_max} in one")
    rows.add_row("a guest can hold", f"{most}: {bound}")
    rows.add_row("TDF", f"{proposal.tdf}: the CPUs of the fullest guest, and a quarter for what is charged to nobody")
    shares = sorted({float(cpu / proposal.tdf) for cpu in proposal.cpus.values()})
    rows.add_row("CPU shares", ", ".join(f"{share:.1%}" for share in shares) + " of a guest each")
    memory = [part.memory_bytes / 1e9 for part in proposal.parts]
    said = f"{sum(memory):.3g} GB in sum, {max(memory):.3g} GB in one guest, where machines say it"
    rows.add_row("memory", said if sum(memory) else "no machine says what it needs")
    rows.add_row("host time", _host_time(proposal, duration_ns, pilot, cores))
    for loss in proposal.losses:
        rows.add_row("not scaled", escape(loss))
    Output().print(rows)


def _host_time(proposal: Proposal, duration_ns: int | None, pilot: Pilot | None, cores: int) -> str:
    if duration_ns is None:
        each = proposal.host_s_max(1, cores)
        measured = "" if pilot is None else f"{pilot.pace:.3g} s for a virtual second, as the pilot went; "
        return f"{measured}at most {each:.3g} s for a virtual second; --duration 60s says how long it is"
    virtual_s = duration_ns / 1e9
    bound = f"at most {proposal.host_s_max(virtual_s, cores):.3g} s, if all CPUs are always busy"
    if pilot is None:
        return f"{bound}; --pilot 1s measures what can be expected"
    return f"{pilot.host_s_of(virtual_s):.3g} s for {virtual_s:g} virtual s, as the pilot went; {bound}"
