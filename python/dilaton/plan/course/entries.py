"""The entries of a plan's course that are no processes, and what they do. `plan/model.py` has the rest of the plan.

The agent reads them with `crates/agent/src/plan/course.rs`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dilaton.plan.cpu import Cpu
from dilaton.plan.links.queues import Egress, Nanoseconds, Part, Ratio, Seed


class EndChange(Part):
    """The complete new state of one end of a link."""

    node: str
    interface: str
    egress: Egress
    up: bool
    """Whether the interface is up; one that comes up again gets its addresses, neighbours and routes anew."""


class Awaited(Part):
    """A moment in the life of an entry of the course, which others wait for.

    `begin`: a process was executed, another entry has its effect. `milestone`: what a process is there for, its
    readiness if it has one, else its start if it is in the background, else its end with the expected exit status; of
    other entries their begin. `end`: it ended, however.
    """

    name: str
    moment: Literal["begin", "milestone", "end"]


class At(Part):
    """The beginning at an instant, since virtual 0."""

    kind: Literal["at"] = "at"
    at_ns: Nanoseconds


class After(Part):
    """So long after a moment of another entry."""

    kind: Literal["after"] = "after"
    awaited: Awaited
    wait_ns: Nanoseconds


class ChangeLink(Part):
    """A link is something else from then on: the ends that change. The next change says what comes, not an end."""

    kind: Literal["change-link"] = "change-link"
    link: str
    ends: list[EndChange] = Field(min_length=1)
    under: dict[str, list[EndChange]]
    """What these ends are from then on while faults last, by their names in alphabetical order, joined by `+`."""


class WrongDisk(Part):
    """What is wrong with a disk; what is 0 or None does nothing."""

    errors: Ratio
    """The share of reads and writes that fail."""
    corrupt: Ratio
    """The share of reads of which one bit is wrong."""
    delay_ns: Nanoseconds
    """So much longer each request takes."""
    stall_ns: Nanoseconds
    """So long from the begin on nothing is answered."""
    refuses: Literal["read-only", "full"] | None
    """Why writes fail."""
    seed: Seed


class BreakDisk(Part):
    """Something is wrong with the disk of a node."""

    kind: Literal["break-disk"] = "break-disk"
    node: str
    number: int = Field(ge=0, lt=16)
    """The number of the disk, among those of its guest."""
    wrong: WrongDisk


class Flap(Part):
    """How a fault comes and goes: it is there for `down_ns` from its begin on, then not for `up_ns`, and so on."""

    down_ns: int = Field(gt=0)
    up_ns: int = Field(gt=0)


class ImpairLink(Part):
    """Links are what they are under a fault, and at its end what they would be without it."""

    kind: Literal["impair-link"] = "impair-link"
    links: list[str] = Field(min_length=1)
    """One, or the ports of a segment."""
    ends: list[EndChange] = Field(min_length=2)
    """All their ends under it, at virtual 0; `ChangeLink` says what later becomes of them."""
    beside: dict[str, list[EndChange]]
    """The same while others last, too; by all their names, as in `ChangeLink`. No others can last meanwhile."""
    flap: Flap | None


class Kill(Part):
    """A process is killed, with its group, and started again at the end, if it has one."""

    kind: Literal["kill"] = "kill"
    node: str
    process: str


class Cut(Part):
    """What these nodes send to those is lost."""

    sources: list[str] = Field(min_length=1)
    targets: list[str] = Field(min_length=1)


class Partition(Part):
    """Nodes do not hear each other, wherever the packets go; what they forward for others passes."""

    kind: Literal["partition"] = "partition"
    cuts: list[Cut] = Field(min_length=1)


class Pause(Part):
    """Programs stand still, and go on as if nothing had been."""

    kind: Literal["pause"] = "pause"
    node: str
    process: str | None
    """The process, with its group; None: all that the node runs."""


class SetClock(Part):
    """The date of a node that has a kernel of its own is another one; at the end, what it would be without that."""

    kind: Literal["set-clock"] = "set-clock"
    node: str
    by_ns: int
    """Later by so much; less than 0: earlier."""
    every_ns: int | None = Field(default=None, gt=0)
    """By so much after each of these, again and again; None: once, at the begin."""


class Syns(Part):
    """First segments of TCP connections that never go on."""

    kind: Literal["syn"] = "syn"


class Datagrams(Part):
    """Datagrams of UDP."""

    kind: Literal["udp"] = "udp"
    bytes: int = Field(ge=0, lt=1 << 16)
    """Of each, without headers."""


class Requests(Part):
    """Requests of HTTP, each over a connection of its own."""

    kind: Literal["http"] = "http"
    host: str
    """The other node, as its programs know it."""
    path: str


class Load(Part):
    """What is sent to another node."""

    to: str
    """Its address."""
    port: int = Field(gt=0, lt=1 << 16)
    what: Annotated[Syns | Datagrams | Requests, Field(discriminator="kind")]
    count: int = Field(gt=0)
    """So many in each `every_ns`: the one numbered n, from 0, is sent n * every_ns / count after the begin."""
    every_ns: int = Field(gt=0)


class SendLoad(Part):
    """A node sends something to another one, so often."""

    kind: Literal["send-load"] = "send-load"
    node: str
    load: Load


class SlowCpu(Part):
    """The CPU of a node is slower, where that is a share of its guest's."""

    kind: Literal["slow-cpu"] = "slow-cpu"
    node: str
    to: Cpu
    """Meanwhile."""
    usual: Cpu
    """At other times."""


class TakeMemory(Part):
    """A node has less memory; who has more loses what can be read again, or ends."""

    kind: Literal["take-memory"] = "take-memory"
    node: str
    leave_bytes: int = Field(gt=0)


class PowerOff(Part):
    """A node goes off, and boots at the end, if there is one.

    `crash`: it loses its power. `stop`: its processes are asked to end first, and it is off when they have. `reboot`:
    the same, and it boots as soon as it is off.
    """

    kind: Literal["power-off"] = "power-off"
    node: str
    how: Literal["crash", "stop", "reboot"]


class PowerOn(Part):
    """A node that is off boots; nothing is undone."""

    kind: Literal["power-on"] = "power-on"
    node: str


class Timed(Part):
    """An entry of the course that is no process."""

    name: str
    """The name by which others wait for it; empty: nobody can."""
    what: str
    """What it does, in the words of the lab; empty where something else says that."""
    when: Annotated[At | After, Field(discriminator="kind")]
    for_ns: Nanoseconds | None
    """It is undone so long after it began; None: never."""
    effect: Annotated[
        BreakDisk
        | ChangeLink
        | ImpairLink
        | Kill
        | Partition
        | Pause
        | PowerOff
        | PowerOn
        | SendLoad
        | SetClock
        | SlowCpu
        | TakeMemory,
        Field(discriminator="kind"),
    ]


class LinkUpdate(Part):
    """What a link becomes while a run goes on, in place of all that was planned for it; a document of its own."""

    link: str
    modules: list[str]
    """Kernel modules that this takes and the plan does not name."""
    tables: dict[str, list[int]]
    """As `Plan.tables`, of those that this uses."""
    course: list[Timed]
    """Entries in the order of time; what is at 0, or whose instant has passed, happens at once."""


class FaultUpdate(Part):
    """Faults that somebody begins or undoes by hand while a run goes on; a document of its own."""

    is_question: bool
    """The agent only says whether it could. Of several, one would else take what another refuses."""
    links: list[LinkUpdate]
    """What becomes of links that these faults are of."""
    modules: list[str]
    """Kernel modules that this takes and the plan does not name."""
    again: list[Timed]
    """Other faults of these links, as they are from now on."""
    begin: list[Timed]
    """They begin when the agent hears of them, whatever instant they name."""
    undo: list[str]
    """Names of those that end then."""
