"""Makes the plan of a lab and of what counts instead of what it says, and tells what is likely to go wrong in a run of
it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dilaton.host.errors import HostLacksError
from dilaton.host.here.doctor import programs
from dilaton.lab.checks.whole import check_time
from dilaton.lab.errors import LabError, Problem, field_name
from dilaton.lab.loader import loads, locate
from dilaton.lab.model import Lab
from dilaton.lab.settings import Setting, parse_setting
from dilaton.lab.text import syntax, units
from dilaton.measure import numbers
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.confirm import refusal
from dilaton.plan.errors import lab_error
from dilaton.plan.forecast import foresight
from dilaton.plan.forecast.cost import Cost, estimate
from dilaton.plan.model import Plan
from dilaton.run import here
from dilaton.run.source import Source
from dilaton.service.errors import RequestError, refusing
from dilaton.service.request import Engine, LabText, Overrides

LONG_HOST_S = 30.0
"""Why a run takes longer is told with how long it takes."""
TOLD_HOST_S = 180.0
"""What a run that takes longer costs is told before it starts; who runs a first lab has enough to read."""

DISK_BYTES_MIN = 10 << 20
"""What a request has to allow: the record of a run, its plan and the room that is kept for them take a few MiB."""


@dataclass(frozen=True)
class Prepared:
    """A lab that can be planned.

    Attributes:
        lab: With what counts instead of what it says.
        plan: What it compiles to.
        text: As it was written.
        settings: The fields that were replaced.
        overrides: All that counts instead of what it says.
    """

    lab: Lab
    plan: Plan
    text: LabText
    settings: tuple[Setting, ...] = ()
    overrides: Overrides = field(default_factory=Overrides)

    @property
    def source(self) -> Source:
        """What a run of it keeps of the lab."""
        of_time = {name: getattr(self.overrides, name) for name in ("tdf", "drive", "max_speed")}
        said = [f"time.{name}={value}" for name, value in of_time.items() if value is not None]
        return Source(self.lab, self.text.text, self.text.file, (*self.overrides.settings, *said))

    def placed(self, problems: Iterable[Problem]) -> LabError:
        """Problems, each at its place in the lab's text, or in the settings that replaced that."""
        return locate(LabError(list(problems)), self.text.text, self.text.name, self.settings)


def disk_bytes(max_disk: str | None) -> int | None:
    """What a run directory may take, of a request that says it as the lab would write it.

    Raises:
        RequestError: that is no size, or no run fits into it.
    """
    if max_disk is None:
        return None
    with refusing(ValueError, field="max_disk"):
        size_bytes = units.parse_size(max_disk)
        if size_bytes < DISK_BYTES_MIN:
            raise ValueError(f"{max_disk}: a run takes {units.format_size(DISK_BYTES_MIN)} at least")
        return size_bytes


def prepare(text: LabText, overrides: Overrides) -> Prepared:
    """Reads and plans a lab.

    Raises:
        LabError: with a line for every mistake in the lab.
        RequestError: what is to count instead of it has one.
    """
    with refusing(ValueError):
        settings = tuple(parse_setting(setting) for setting in overrides.settings)
    lab = loads(text.text, text.name, settings, here.core_ghz())
    if times := _times(overrides):
        lab = lab.model_copy(update={"time": lab.time.model_copy(update=times)})
    if found := [f"{field_name(finding.path)}: {finding.message}" for finding in check_time(lab.time)]:
        raise RequestError("\n".join(found))
    if overrides.confirm is not None:
        fidelity = lab.fidelity.model_copy(update={"confirm": overrides.confirm})
        lab = lab.model_copy(update={"fidelity": fidelity})
    try:
        plan = compile_plan(lab, here.for_plans())
        if lab.fidelity.confirm and (why := refusal(lab, plan)):
            if overrides.confirm:
                raise overrides.unconfirmed(why)
            raise lab_error("fidelity.confirm", why)
    except LabError as error:
        raise locate(error, text.text, text.name, settings) from error
    return Prepared(lab, plan, text, settings, overrides)


def _times(overrides: Overrides) -> dict[str, object]:
    """The fields of a lab's `time` that are given instead.

    Raises:
        RequestError: one cannot be read.
    """
    readers = {"tdf": syntax.parse_tdf, "drive": syntax.parse_drive, "max_speed": syntax.parse_max_speed}
    fields: dict[str, object] = {}
    for name, read in readers.items():
        if (text := getattr(overrides, name)) is not None:
            with refusing(ValueError, field=name):
                fields[name] = read(text)
    return fields


def refuse_division(plan: Plan, machines: int, onto: Sequence[str] = (), engine: Engine = "local") -> None:
    """Refuses what cannot run on so many machines of an engine, or on these hosts.

    Raises:
        RequestError: Why it cannot.
    """
    if onto and machines != 1:
        raise RequestError(f"{machines}: these are made of this machine, and --onto names others", "machines")
    if onto and engine != "local":
        raise RequestError(f"{engine}: this engine has machines of its own, and --onto names others", "engine")
    field = "onto" if onto else "machines"
    machines = len(onto) or machines
    if machines == 1 and not onto and engine == "local":
        return
    if machines > len(plan.guests):
        guests = numbers.counted(len(plan.guests), "guest")
        raise RequestError(
            f"{machines}: the lab has {guests}, and each is on one machine; divide it into more, "
            f"as with --set guests={machines}",
            field,
        )
    pinned = {guest.name: guest.machine for guest in plan.guests if guest.machine is not None}
    if beyond := [f"{name} on machine {machine}" for name, machine in pinned.items() if machine >= machines]:
        raise RequestError(
            f"{machines}: the lab's placement has {', '.join(beyond)}, and machines are numbered from 0", field
        )
    if plan.time.drive == "wall":
        raise RequestError(
            f"{machines}: on the wall drive the clock of one host drives all guests; use drive work or event",
            field,
        )


def doubts(prepared: Prepared) -> list[Problem]:
    """What is likely to be a mistake, and keeps nothing from running."""
    found = list(foresight.doubts(prepared.lab, prepared.plan))
    # To find their places the text is read once more.
    return prepared.placed(found).problems if found else []


def refuse_hopeless(prepared: Prepared) -> None:
    """Refuses a lab whose run would go wrong, as far as that can be seen before.

    Raises:
        LabError: with every mistake that keeps it from running.
        HostLacksError: this machine lacks programs that it runs.
    """
    lab, plan = prepared.lab, prepared.plan
    sight = foresight.Sight(programs.executes, programs.reads, programs.hides, programs.congestion_controls())
    if found := list(foresight.mistakes(lab, sight)):
        raise prepared.placed(found)
    if lacks := list(foresight.lacks(lab, plan, sight)):
        lacking = list(dict.fromkeys(lack.program for lack in lacks))
        named = [Problem("", 0, 0, lack.field, f"{lack.program}: not on this machine") for lack in lacks]
        raise HostLacksError(str(prepared.placed(named)), programs.fix(lacking))


def measures_nothing(lab: Lab) -> bool:
    """Whether a run of the lab would be over before it has measured anything that it is asked to."""
    measure = lab.measure
    is_asked = measure.interfaces_ns or measure.tcp_ns or measure.nodes_ns or measure.outputs or measure.capture
    return bool(is_asked) and lab.stop_after_ns is None and all(process.background for process in lab.run)


def cost(prepared: Prepared) -> Cost | None:
    """What a run costs on this machine; None where nothing of it is known."""
    return estimate(prepared.lab, prepared.plan, here.for_plans().cores)


def says_cost(prepared: Prepared, least_host_s: float = 0.0) -> str:
    """What a run costs of the host's time, and why if that is long; empty if it is not known, or less than so much."""
    found = cost(prepared)
    if found is None or found.host_s < least_host_s:
        return ""
    said = f"about {numbers.duration(found.host_s, digits=2)} of host time"
    return f"{said}, since {found.hint}" if found.host_s > LONG_HOST_S else said


def says_no_end(lab: Lab) -> str:
    """Says that the lab has programs that never end, and when its run ends therefore; empty if it has an end."""
    names = [f"{process.on}/{process.name}" for process in foresight.unending(lab)]
    if not names:
        return ""
    never = "never ends by itself" if len(names) == 1 else "never end by themselves"
    return (
        f"{', '.join(names)} {never}: the run ends at {foresight.UNENDING_S} s; for another end write "
        "stop_after, or --set stop_after=10s"
    )


def staying(prepared: Prepared) -> Prepared:
    """A lab whose run stays: its time passes at host speed at most, unless the lab says another."""
    return replace(prepared, plan=prepared.plan.model_copy(update={"stays": True, "stop_after_ns": None}))


def ending(prepared: Prepared) -> Prepared:
    """A lab whose programs never end, with an end."""
    end = {"stop_after_ns": foresight.UNENDING_S * 10**9}
    return replace(prepared, lab=prepared.lab.model_copy(update=end), plan=prepared.plan.model_copy(update=end))
