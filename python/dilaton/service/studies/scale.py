"""A lab of many machines on few guests: what that means, what it will cost, and a lab file ready to run."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from dilaton.host.here.doctor.doctor import require
from dilaton.lab.errors import LabError
from dilaton.lab.loader import loads, locate
from dilaton.lab.model import Lab
from dilaton.lab.text import units
from dilaton.plan.scale import Proposal, machines, propose
from dilaton.run import here
from dilaton.run.control.errors import ControlError
from dilaton.run.record import record
from dilaton.service.errors import RequestError, refusing
from dilaton.service.launch import launch
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides, RunRequest, Value, lab_file
from dilaton.service.tidings import Ended

PILOT_SHARE = 10
"""The pilot is the first part of the run, one in so many, or more if programs begin late, unless it is given."""

PILOT_HINT = "give a longer pilot, in which all programs start and all changes come, or 0s for none"

LINE_CHARACTERS_MAX = 10_000
"""The longest line of the scaled lab, so that no line of the lab is broken."""


class ScaleRequest(Value):
    """What is to be scaled down.

    Attributes:
        lab: A lab's file, or its directory.
        onto: How many guests hold the machines.
        machines: How many hosts the lab must have; None: as many as it has.
        out: The scaled lab, beside the lab; None: `<lab>-onto-<guests>.yaml`.
        duration: How long a run is, in virtual time; None: as the lab says.
        pilot: How much of it is run to predict the rest; None: what shows that.
        confirm: Whether the scaled lab says that its runs are to be confirmed.
    """

    lab: Path
    onto: int
    machines: int | None = None
    out: Path | None = None
    duration: str | None = None
    pilot: str | None = None
    confirm: bool = False


@dataclass(frozen=True)
class Scaled:
    """A lab that was scaled down.

    Attributes:
        lab: As it was.
        proposal: What becomes of it.
        target: The scaled lab.
        duration_ns: How long a run is; None: nobody has said it.
        pilot_ns: How much of it shows what it costs; 0: nothing is to be run.
    """

    lab: Lab
    proposal: Proposal
    target: Path
    duration_ns: int | None
    pilot_ns: int


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


def scale(request: ScaleRequest) -> Scaled:
    """Scales a lab down, and writes it.

    Raises:
        LabError: the lab has mistakes, or cannot be scaled.
        RequestError: the request has, or the scaled lab cannot be where it is to be.
        HostLacksError: this machine cannot run the pilot.
    """
    with refusing(OSError):
        file = lab_file(request.lab)
        text = LabText.read(file)
        lab, proposal = proposed(text, request.onto, request.machines)
        duration_ns = _duration(request.duration, "duration") or lab.stop_after_ns
        pilot_ns = _duration(request.pilot, "pilot")
        target = request.out or file.with_name(f"{file.stem}-onto-{request.onto}.yaml")
        write_scaled(file, scaled_text(text.text, lab, proposal, confirm=request.confirm), target)
    prepare(LabText.read(target), Overrides())
    if pilot_ns is None:
        pilot_ns = 0 if duration_ns is None else pilot_duration(lab, duration_ns)
    if pilot_ns:
        require(jailed=True)
    return Scaled(lab, proposal, target, duration_ns, pilot_ns)


def proposed(text: LabText, onto: int, expected: int | None = None) -> tuple[Lab, Proposal]:
    """A lab, which need not be able to run as it is, and how it is scaled.

    Args:
        text: Of the lab.
        onto: How many guests hold its machines.
        expected: How many machines it must have; None: as many as it has.

    Raises:
        LabError: the lab has mistakes, or cannot be scaled.
        RequestError: it has others, or too few of them.
    """
    lab = loads(text.text, text.name, [("guests", "1")], here.core_ghz())
    count = len(machines(lab))
    if expected not in (None, count):
        raise RequestError(
            f"{expected}: the lab has {count}, its hosts; write as many into it, as topology: {{generate: "
            f"star, leaves: {expected}}} does, or leave this out",
            "machines",
        )
    try:
        return lab, propose(lab, onto, here.for_plans())
    except LabError as error:
        if too_many := [problem.message for problem in error.problems if problem.field == "guests"]:
            # Of which the request says how many there are, not the lab.
            raise RequestError(too_many[0], "onto") from error
        raise locate(error, text.text, text.name) from error


def _duration(text: str | None, field: str) -> int | None:
    with refusing(ValueError, field=field):
        return None if text is None else units.parse_duration(text)


def pilot_duration(lab: Lab, duration_ns: int) -> int:
    """How much of a run shows what it costs, in nanoseconds: all that has an instant begins in the first half."""
    instants = [process.start_ns for process in lab.run] + [change.at_ns for change in lab.changes]
    instants += [fault.at_ns for fault in lab.faults if fault.at_ns is not None]
    return min(duration_ns, max(duration_ns // PILOT_SHARE, 2 * max(instants, default=0)))


def write_scaled(path: Path, text: str, target: Path) -> None:
    """Writes the text of the lab of `path`, scaled, to `target`, which is beside it: paths in it start there.

    Raises:
        RequestError: `target` is elsewhere, or the lab itself.
        OSError: It cannot be written.
    """
    if target.resolve().parent != path.resolve().parent or target.resolve() == path.resolve():
        raise RequestError(f"{target}: must be another file beside {path}, since paths in it start there")
    target.write_text(text)


def scaled_text(text: str, lab: Lab, proposal: Proposal, *, confirm: bool = False) -> str:
    """The text of a lab, scaled; comments stay. `confirm`: its runs are to be confirmed."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = LINE_CHARACTERS_MAX
    data: Any = yaml.load(text)
    data["guests"] = len(proposal.parts)
    data["time"] = {**(data.get("time") or {}), "drive": "work", "tdf": proposal.tdf}
    data["time"].pop("auto", None)
    if confirm:
        if not isinstance(data.get("fidelity"), dict):
            data["fidelity"] = {}
        data["fidelity"]["confirm"] = True
    nodes = data.setdefault("nodes", {})
    for name in machines(lab):
        if lab.nodes[name].cpu is None:
            nodes[name] = {**(nodes.get(name) or {}), "cpu": 1}
        if nodes.get(name):
            nodes[name].pop("guest", None)
    written = io.StringIO()
    yaml.dump(data, written)
    return written.getvalue()


async def run_pilot(scaled: Scaled) -> Pilot:
    """Runs the beginning of a lab that was scaled down, and says what it took.

    Raises:
        RequestError: It did not run.
    """
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "pilot"
        setting = f"stop_after={units.format_duration(scaled.pilot_ns)}"
        overrides = Overrides(settings=(setting,), confirm=False)
        try:
            ended = await _ran(RunRequest(lab=LabText.read(scaled.target), overrides=overrides, out=out))
        except (LabError, ControlError) as error:
            raise RequestError(f"the pilot did not run: {error}\n{PILOT_HINT}") from error
        if ended.state != "finished":
            raise RequestError(f"the pilot {ended.state}: {ended.reason}")
        time = record.load(out).time
        with (out / "clock.csv").open() as file:
            rows = [(float(row["virtual_s"]), float(row["host_s"])) for row in csv.DictReader(file)]
    return Pilot(time.virtual_s, time.host_s, time.boot_host_s, pace_of(rows, time.virtual_s))


async def _ran(request: RunRequest) -> Ended:
    process = launch(request)
    try:
        return await process.end()
    finally:
        process.stop()
        await process.wait()


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
