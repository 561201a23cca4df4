"""What would go wrong in a run, as far as it can be seen before: absent programs, files that nodes do not see, no end.

A program that another one of its node may have put there first is not judged, nor is one in the image of a disk, nor
one whose exit status does not matter. What is only likely to be a mistake is a doubt, and keeps nothing from running.
"""

from __future__ import annotations

import getopt
import math
import posixpath
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from dilaton.lab.errors import Problem, unknown
from dilaton.lab.kinds import OVS
from dilaton.lab.model import Lab, Process
from dilaton.plan import model as planned
from dilaton.plan.kinds import daemon
from dilaton.plan.model import Plan
from dilaton.plan.schedule import environment, home

UNENDING_S = 60
"""Virtual time after which a run ends that has no end of its own."""

INTERPRETERS = frozenset({"bash", "node", "perl", "python", "python3", "ruby", "sh"})
"""Programs whose first argument is a file, if it is no option."""

SCRIPTS = (".js", ".pl", ".py", ".rb", ".sh")
"""How names of such files end. Without a slash in it, another name may be that of a program, which shells look for."""

PING_OPTIONS = "46aAbBdDfhLnOqrRUvVc:e:F:i:I:l:m:M:N:p:Q:s:S:t:T:w:W:"

PING_WHOLE = {"-w": "seconds", "-c": "numbers"}
"""Options of ping whose values have no fractions, and what they count."""

OF_OVS = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-vswitchd")
"""The programs of the script that starts an Open vSwitch."""

START_CORE_S = 0.01
"""What a small program costs the CPU of its guest until it is at work; see docs/performance.md."""

CROWD_S_MAX = 1.0
"""Programs that start at the same instant may all be at work this much virtual time later."""

CONGESTION_CONTROL = "net/ipv4/tcp_congestion_control"


@dataclass(frozen=True)
class Sight:
    """What can be told of the machine that will run a lab.

    Attributes:
        executes: Whether nodes find a program, by its name or path and their PATH.
        reads: Whether nodes see a file, by its path.
        hides: Whether the machine has a file that nodes do not see.
        controls: The congestion controls that guests have; None: not known.
    """

    executes: Callable[[str, str], bool]
    reads: Callable[[str], bool]
    hides: Callable[[str], bool]
    controls: Container[str] | None = None


@dataclass(frozen=True)
class Lack:
    """A program that a field of a lab needs and nodes do not find."""

    field: str
    program: str


def lacks(lab: Lab, plan: Plan, sight: Sight) -> Iterator[Lack]:
    """The programs of a lab that this machine lacks."""
    written = {process.name for process in lab.run}
    of_kinds = [(process.node, process.argv[0]) for process in _of_machine(plan) if process.name not in written]
    of_kinds += [(name, program) for name, node in lab.nodes.items() if node.kind == OVS for program in OF_OVS]
    for name, program in of_kinds:
        if not sight.executes(program, environment(name)["PATH"]):
            yield Lack(f"nodes.{name}", program)
    for field, process in _certain(lab):
        program = process.argv[0]
        if "/" in program:
            program = posixpath.join(home(process, lab.files), program)
        path = (environment(process.on) | process.env)["PATH"]
        if _brings(lab, process.on, program, path):
            continue
        if not sight.executes(program, path) and not sight.hides(program):
            yield Lack(f"{field}.exec", program)


def programs_needed(lab: Lab, plan: Plan, executes: Callable[[str, str], bool]) -> dict[str, bool]:
    """The programs that the nodes of a lab run, in order, and whether all of these find them."""
    found: dict[str, bool] = {}
    for process in _of_machine(plan):
        program = process.argv[0]
        if "/" in program:
            program = posixpath.join(process.cwd, program)
        found[program] = found.get(program, True) and executes(program, process.env["PATH"])
    for name in (name for name, node in lab.nodes.items() if node.kind == OVS):
        found |= {program: executes(program, environment(name)["PATH"]) for program in OF_OVS}
    return found


def mistakes(lab: Lab, sight: Sight) -> Iterator[Problem]:
    """What keeps a lab from running, and no package mends."""
    for field, process in _certain(lab):
        script = _script(process, home(process, lab.files))
        if script is None or _brings(lab, process.on, script, ""):
            continue
        is_beside = any(script.startswith(f"{directory}/") for directory in lab.files)
        if sight.hides(script):
            if is_beside:
                continue
            said = "nodes have a /tmp, /var/tmp, /run and /dev of their own; put it beside the lab, and write files: ."
            yield _problem(f"{field}.exec", f"{script}: {said}")
        elif script != process.argv[0] and not sight.reads(script):
            written = process.argv[0] if "/" in process.argv[0] else process.argv[1]
            is_relative = not lab.files and not written.startswith("/")
            beside = "; nodes see what is beside the lab with files: ." if is_relative else ""
            yield _problem(f"{field}.exec", f"{script}: there is no such file{beside}")
    if sight.controls is None:
        return
    for name, node in lab.nodes.items():
        control = node.sysctls.get(CONGESTION_CONTROL)
        if control is not None and control not in sight.controls:
            yield _problem(f"nodes.{name}.sysctls", f"{control}: the guest's kernel has no such congestion control")
    for number, process in enumerate(lab.run):
        control = _value(process, "iperf3", "-C", "--congestion")
        if control is not None and control not in sight.controls:
            yield _problem(f"run[{number}].exec", f"{control}: the guest's kernel has no such congestion control")


def doubts(lab: Lab, plan: Plan) -> Iterator[Problem]:
    """What is likely to be a mistake."""
    linked = {end.node for link in lab.links for end in link.endpoints}
    if lab.links:
        for name in lab.nodes.keys() - linked:
            yield _problem(f"nodes.{name}", "no link ends here, so that nothing can reach it")
    yield from _crowds(lab, plan)
    known = {name for entry in plan.hosts for name in entry.names} | {"localhost"}
    for number, process in enumerate(lab.run):
        host = _host(process)
        if host and host not in known and not _is_address(host):
            yield _problem(f"run[{number}].exec", unknown("host", host, sorted(lab.nodes)))
        if posixpath.basename(process.argv[0]) == "iperf":
            yield _problem(
                f"run[{number}].exec", "nothing is read of what iperf prints; iperf3 -J gives rates and losses"
            )
        pinged = _ping(process.argv[1:]) if posixpath.basename(process.argv[0]) == "ping" else None
        for option, value in (pinged[0] if pinged else {}).items():
            if option in PING_WHOLE and "." in value:
                yield _problem(f"run[{number}].exec", f"{option} {value}: ping takes whole {PING_WHOLE[option]}")
        if pinged and "-w" in pinged[0] and "-c" not in pinged[0] and (lab.changes or lab.faults):
            said = "with -w ping ends when a router says that it has no way, as after a cut; -c goes on"
            yield _problem(f"run[{number}].exec", said)
        seconds = _value(process, "iperf3", "-t", "--time") or ""
        if "." in seconds:
            taken = seconds.partition(".")[0].lstrip("0")
            said = f"it takes {taken}" if taken else "of less than one it makes 0, which is without end"
            yield _problem(f"run[{number}].exec", f"time {seconds}: iperf3 reads whole seconds; {said}")


def _crowds(lab: Lab, plan: Plan) -> Iterator[Problem]:
    """Starts of so many programs at once that the last are at work when the first miss them.

    Nodes have a CPU each, but those of a guest share the host's core, and start a little each in turn.
    """
    if lab.time.drive == "event":
        return
    guest_of = {node.name: node.guest for node in plan.nodes}
    own = {guest.name: guest.tdf.ratio for guest in plan.guests if guest.tdf is not None}
    crowds: dict[tuple[str, int], list[int]] = {}
    for number, process in enumerate(lab.run):
        if not process.after:
            crowds.setdefault((guest_of[process.on], process.start_ns), []).append(number)
    for (guest, _), numbers in crowds.items():
        tdf, core_s = own.get(guest, lab.time.tdf), len(numbers) * START_CORE_S
        if tdf == "auto" or core_s / tdf <= CROWD_S_MAX:
            continue
        yield _problem(
            f"run[{numbers[-1]}].exec",
            f"with it {len(numbers)} programs start at one instant in one guest, which takes about {core_s / tdf:.2g} "
            f"s of virtual time at tdf {float(tdf):.3g}: who asks another one before may find nobody; start it later "
            f"or after: one that is ready:, or raise tdf to {math.ceil(core_s / CROWD_S_MAX)}",
        )


def unending(lab: Lab) -> list[Process]:
    """The programs that keep a run from ever ending; none, if something else ends it."""
    if lab.stop_after_ns is not None:
        return []
    return [
        process
        for process in lab.run
        if not process.background and process.stop_ns is None and process.timeout_ns is None and _is_endless(process)
    ]


def _of_machine(plan: Plan) -> Iterator[planned.Process]:
    """The processes whose programs this machine must have: the agent's own is in every node."""
    return (process for process in plan.processes if process.argv[0] != daemon.AGENT)


def _certain(lab: Lab) -> Iterator[tuple[str, Process]]:
    """Processes that nothing can have prepared for, each with its field."""
    alone = [process.on for process in lab.run]
    for number, process in enumerate(lab.run):
        disk = lab.nodes[process.on].disk
        is_first = (not process.after and process.start_ns == 0) or alone.count(process.on) == 1
        is_first &= lab.nodes[process.on].image == "host"
        if is_first and process.expect_exit == 0 and (disk is None or disk.image is None):
            yield f"run[{number}]", process


def _brings(lab: Lab, node: str, program: str, search: str) -> bool:
    """Whether a program, or script, is among the files that the lab gives the node."""
    places = [program] if "/" in program else [posixpath.join(directory, program) for directory in search.split(":")]
    files = lab.nodes[node].files
    own = {posixpath.join(place, one.below) for place, given in files.items() for one in given.entries if one.below}
    return any(posixpath.normpath(place) in files.keys() | own for place in places)


def _script(process: Process, directory: str) -> str | None:
    """The path of the file that a process executes, or has a known program interpret."""
    program, *rest = process.argv
    if "/" in program:
        return posixpath.join(directory, program)
    if posixpath.basename(program) not in INTERPRETERS or not rest or rest[0].startswith("-"):
        return None
    return posixpath.join(directory, rest[0]) if "/" in rest[0] or rest[0].endswith(SCRIPTS) else None


def _is_endless(process: Process) -> bool:
    program, words = posixpath.basename(process.argv[0]), process.argv[1:]
    if program == "ping":
        options = _ping(words)
        return options is not None and not {"-c", "-w", "-V", "-h"} & {*options[0]}
    if program == "iperf3":
        if {"-c", "--client"} & {*words} and not {"-n", "--bytes", "-k", "--blockcount"} & {*words}:
            return (_value(process, "iperf3", "-t", "--time") or "1").partition(".")[0].strip("0") == ""
        return bool({"-s", "--server"} & {*words}) and not {"-1", "--one-off", "-D", "--daemon"} & {*words}
    return False


def _host(process: Process) -> str | None:
    """The host that a known program speaks to."""
    if posixpath.basename(process.argv[0]) == "ping":
        options = _ping(process.argv[1:])
        return options[1][-1] if options and options[1] else None
    return _value(process, "iperf3", "-c", "--client")


def _ping(words: list[str]) -> tuple[dict[str, str], list[str]] | None:
    """The options of ping with their values, and its other words; None: it would not read them."""
    try:
        options, others = getopt.gnu_getopt(words, PING_OPTIONS)
    except getopt.GetoptError:
        return None
    return dict(options), others


def _value(process: Process, program: str, *options: str) -> str | None:
    """The word after one of the options of a program."""
    if posixpath.basename(process.argv[0]) != program:
        return None
    pairs = zip(process.argv, process.argv[1:], strict=False)
    return next((value for option, value in pairs if option in options), None)


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()


def _problem(field: str, message: str) -> Problem:
    return Problem("", 0, 0, field, message)
