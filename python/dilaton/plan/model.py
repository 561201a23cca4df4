"""The plan: everything that a run will do, complete and explicit, as one JSON document.

The plan is the contract between `plan/` (which writes it), `host/` (which starts its guests) and the agent (which
carries it out inside them). Executing a plan adds no decision. Units are fixed and named in the fields: nanoseconds
of *virtual* time, bytes, bits per second, ratios in 0..1. The agent reads the same document with
`crates/agent/src/plan.rs`; a change here is a change there and a new `FORMAT`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, RootModel

from dilaton.plan.bind import Bind
from dilaton.plan.common import FORMAT
from dilaton.plan.course.entries import Awaited, Timed
from dilaton.plan.cpu import Cpu
from dilaton.plan.links.queues import Egress, Nanoseconds, Part


class Exact(Part):
    """A number above zero, as the exact ratio numerator / denominator."""

    numerator: int = Field(gt=0)
    denominator: int = Field(gt=0)

    @classmethod
    def of(cls, value: Fraction) -> Self:
        """That number."""
        return cls(numerator=value.numerator, denominator=value.denominator)

    @property
    def ratio(self) -> Fraction:
        """As a number."""
        return Fraction(self.numerator, self.denominator)


class Tdf(Exact):
    """Time dilation factor: host seconds per virtual second."""


class Speed(Exact):
    """Virtual seconds per host second."""


class ClockRate(Exact):
    """Seconds of a guest's clock per virtual second; other than 1 where clocks run apart."""


class Watch(Part):
    """How a run is watched while it goes: what each epoch shows decides the TDF of the next, from `least` to `most`.

    Of a TDF that stays they are both that TDF.
    """

    policy: Literal["lateness", "pads15"]
    least: Tdf
    most: Tdf
    target: float = Field(gt=0, lt=1)
    """The busy fraction to aim at."""
    epoch_ns: int = Field(gt=0)
    """Virtual time."""
    on_violation: Literal["continue", "hold", "fail", "retry"]
    """What follows when fidelity is out of bounds."""


class Time(Part):
    """What drives virtual time, and how fast, at the start; `max_speed` bounds it, idle time included."""

    drive: Literal["wall", "work", "event"]
    tdf: Tdf
    max_speed: Speed | None = None
    watch: Watch | None = None
    """None: nothing is watched, and the TDF stays."""
    lateness_ns: int | None = None
    """Lateness that the lab does not mind, in virtual time; None: what its paths cannot notice."""


class Neighbour(Part):
    """A permanent entry of the neighbour table, so that no first packet waits for ARP."""

    address: str
    mac: str


class Interface(Part):
    """A network interface of a node."""

    name: str
    mac: str
    mtu: int
    offload: bool
    addresses: list[str]
    """Addresses with their prefix length, as "10.0.0.0/31"."""
    neighbours: list[Neighbour]
    egress: Egress
    """What it does to packets that leave by it, at the start."""
    wire_delay_ns: Nanoseconds
    """What a wire to another guest then delays them by; 0 within a guest."""

    @property
    def delay_ns(self) -> int:
        """The mean delay of its direction of the link, at the start."""
        return self.egress.delay_ns + self.wire_delay_ns


class Hop(Part):
    """The next node on the way."""

    via: str
    interface: str


class Route(Part):
    """A static route of a node, by one hop or by several that are equally good."""

    to: str
    """A prefix, or `default`; then the hops say whether of IPv4 or IPv6."""
    hops: list[Hop] = Field(min_length=1)
    shares: list[int]
    """Which hop (by its number) each of so many equal shares of the flows takes; empty: as the kernel divides them."""


class OwnFile(Part):
    """A file of a node, above those of its file tree; or a directory, if nothing is in it."""

    path: str
    text: str | None = None
    hex: str | None = None
    """What is in it, two digits a byte, where that is no text."""
    mode: int = Field(default=0o644, ge=0, le=0o7777)
    owner: str = "root"
    """A name or number, perhaps with a colon and a group; resolved in the node's /etc/passwd and /etc/group."""


class Bridge(Part):
    """A kernel bridge over all interfaces of a node."""

    name: str
    stp: bool
    """Whether it runs the spanning tree protocol (IEEE 802.1D)."""


class HostTree(Part):
    """The file tree of a node is this machine's root, read-only under an overlay."""

    kind: Literal["host"] = "host"


class StoredImage(Part):
    """The file tree of a node is an image, read-only under an overlay, and a block device of its guest."""

    kind: Literal["stored"] = "stored"
    name: str
    """As people write it."""
    digest: str
    """The digest of the image's manifest."""
    file: str
    """The file of this machine with its tree, a squashfs."""
    device: int = Field(ge=0, lt=16)
    """Among those of its guest: 0 is the kernel's ubda. Nodes with the same image have the same."""


Image = Annotated[HostTree | StoredImage, Field(discriminator="kind")]


class VolatileCache(Part):
    """What a disk loses with its power: what was written and not flushed."""

    bytes: int = Field(gt=0)
    """It holds so many, and lets go of what it has had for longest."""
    torn_seed: int | None
    """The seed from which it is drawn, for each 4 KiB, whether they are lost; None: all are."""


class Disk(Part):
    """A block device of a node, /dev/vda in it, whose requests take the time that a model says."""

    number: int = Field(ge=0, lt=16)
    """Among those of its guest: 0 is the kernel's ubda."""
    model: Literal["fixed", "flash", "mechanical"]
    parameters: dict[str, int]
    """The parameters of the model, as crates/disk/src/parameters.rs explains them."""
    size_bytes: int = Field(gt=0)
    image: str | None
    """The file of this machine that keeps its contents; None: they go with the run."""
    contents: str | None = None
    """The file of this machine with what it begins with, which stays as it is; None: nothing, or what `image` has."""
    mount: str | None
    """Where its file system is in the node, `/` being all that the node writes; None: it has none."""
    volatile_cache: VolatileCache | None
    """None: it keeps what it has taken."""


class Volume(Part):
    """A directory of a node that is in its guest's memory, beside what the node itself writes."""

    name: str | None
    """The nodes of a guest share those of the same name; the image of the first says what is in it at first. None: its
    own, of which its image says that it has to be there."""
    path: str
    """Where it is in the node."""
    written: str | None = None
    """The file of this machine with what an earlier run wrote to it, as the agent packs it. None: it is new."""


class Node(Part):
    """An emulated machine."""

    name: str
    guest: str
    image: Image
    interfaces: list[Interface]
    bridge: Bridge | None
    loopback: list[str]
    """Addresses of the interface `lo` besides 127.0.0.1 and ::1, with prefix length."""
    files: list[OwnFile]
    binds: list[Bind]
    volumes: list[Volume]
    routes: list[Route]
    cpu: Cpu | None
    """None: all that its guest has."""
    sysctls: dict[str, str]
    """Written below /proc/sys in the node, keys with slashes, e.g. `net/ipv4/ip_forward`."""
    memory_bytes: int | None
    """What its programs may take, the files that it has in memory included; None: no limit of its own."""
    disk: Disk | None
    """None: what it writes is in memory."""
    kind: str
    """What it is, as drawings and tables say it."""
    position: tuple[float, float] | None
    """Where the lab's topology has it on a drawing, x to the right and y up, in any unit; None: nowhere."""
    written: str | None = None
    """The file of this machine with what it had written in memory in an earlier run, as the agent packs it. None: it
    begins anew."""


class End(Part):
    """One end of a link."""

    node: str
    interface: str


class Link(Part):
    """A point-to-point link. What its directions do is in the egress of its two interfaces."""

    name: str
    ends: tuple[End, End]


class WireEnd(Part):
    """Where a wire ends."""

    guest: str
    device: str
    """The guest's network device, as `vec0`."""


class Wire(Part):
    """What carries frames between two guests, both ways; the pairs here are of a to b and of b to a.

    A frame arrives exactly its delay after it was sent. Its other delays, losses and queues are in the egress of the
    interfaces, as for links within a guest.
    """

    link: str | None
    """Whose frames; None: those by which the agents of the two guests tell each other of their processes."""
    ends: tuple[WireEnd, WireEnd]
    """Both ends, in the order of the link's."""
    delays_ns: tuple[Nanoseconds, Nanoseconds]
    mtu: int
    """The largest packet in bytes."""
    ring_bytes: tuple[int, int]
    """Room for what is under way."""


class HostsEntry(Part):
    """A line of /etc/hosts, the same in every node."""

    address: str
    names: list[str]


class ReadyTcp(Part):
    """Ready when the node listens on this TCP port (IPv4 or IPv6, any address)."""

    kind: Literal["tcp"] = "tcp"
    port: int


class ReadyOutput(Part):
    """Ready when a line of standard output or standard error matches this regular expression."""

    kind: Literal["output"] = "output"
    regex: str


class ReadyDelay(Part):
    """Ready this long after the start."""

    kind: Literal["delay"] = "delay"
    delay_ns: Nanoseconds


Ready = Annotated[ReadyTcp | ReadyOutput | ReadyDelay, Field(discriminator="kind")]


class Restart(Part):
    """How a process is started again when it has ended by itself, or was killed by a fault."""

    on_failure: bool
    """Only if its end was not its expected one; without an expectation, not exit status 0."""
    delay_ns: Nanoseconds
    """How long after its end, the first time; each further time it is twice as long,"""
    delay_max_ns: Nanoseconds
    """and at most so long,"""
    reset_ns: Nanoseconds
    """until it has lived so long: then it begins anew with the first."""


class Process(Part):
    """A program to run in a node.

    It starts at `start_ns`, or when everything in `after` has happened, whichever is later.
    """

    name: str
    node: str
    argv: list[str] = Field(min_length=1)
    env: dict[str, str]
    cwd: str
    user: str
    """A name or number; resolved in the node's /etc/passwd."""
    stdin: str
    """A path in the node; /dev/null by default."""
    start_ns: Nanoseconds
    after: list[Awaited]
    ready: Ready | None
    ready_timeout_ns: Nanoseconds
    background: bool
    """Stopped with the run; the run does not wait for it."""
    stop_ns: Nanoseconds | None
    """Virtual instant at which it gets SIGTERM; a death by that is its expected end."""
    timeout_ns: Nanoseconds | None
    """It fails when it runs longer than this."""
    expect_exit: int | None
    """The exit status that counts as success; None: any."""
    restart: Restart | None
    """None: when it has ended, it has. Its outputs go on where they ended."""
    boot: bool
    """It is started again when its node boots."""
    stdout: str
    stderr: str
    """Paths relative to the run directory."""


class Guest(Part):
    """A dilated kernel."""

    name: str
    memory_bytes: int
    tdf: Tdf | None
    """The TDF of its clock, where that is its own and stays: how much faster than a core of the host its CPU is. None:
    that of the run, whatever it becomes."""
    machine: int | None = Field(ge=0)
    """Where it is if the run is on several machines, by number; None: wherever the cut is cheap."""
    clock_rate: ClockRate
    modules: list[str]
    """Kernel modules to load, in this order; their dependencies come by themselves. `one|other`: the other where the
    kernel does not have the first."""
    sysctls: dict[str, str]
    """Settings of the kernel as a whole, written below /proc/sys before any node exists; keys with slashes."""


class Instruction(RootModel[tuple[int, int, int, int]]):
    """An instruction of classic BPF: code, jumps if true and if false, operand."""


class Capture(Part):
    """The packets of an interface that are kept, in both directions."""

    node: str
    interface: str
    filter: str | None
    """As it was written, for the file."""
    snaplen: int = Field(gt=0)
    """Bytes of a packet that are kept at most."""
    program: list[Instruction]
    """Filter and `snaplen`: for each packet it says how many bytes are kept, 0 to keep nothing."""
    file: str
    """Path relative to the run directory."""


class Measure(Part):
    """What is measured: samples at every multiple of a period since virtual 0 (None: never), and captures.

    Samples of a guest are tables in `measure/<guest>/` of the run directory, as `docs/measure.md` describes them.
    """

    interfaces_period_ns: int | None = Field(gt=0)
    tcp_period_ns: int | None = Field(gt=0)
    nodes_period_ns: int | None = Field(gt=0)
    outputs: bool
    """Whether it is noted when processes wrote what."""
    captures: list[Capture]


class OwnMetric(Part):
    """A number in the output of a process that the lab itself wants read (see `dilaton.lab.parts.own_metrics`)."""

    regex: str | None
    json_path: list[str | int] | None
    unit: str
    take: Literal["last", "first", "min", "max", "mean", "sum", "count"]


class Check(Part):
    """An expectation on the results, kept as written and evaluated after the run (see `measure/expect.py`)."""

    text: str


class Plan(Part):
    """The whole of it."""

    format: Literal[20] = FORMAT
    lab: str
    seed: int
    time: Time
    stop_after_ns: Nanoseconds | None
    stays: bool = False
    """Whether the run goes on when nothing of the plan is left to do, until somebody ends it."""
    grace_ns: Nanoseconds
    """Virtual time between SIGTERM and SIGKILL when processes are stopped."""
    guests: list[Guest]
    nodes: list[Node]
    links: list[Link]
    wires: list[Wire]
    tables: dict[str, list[int]]
    """Distribution tables of netem by name: quantiles of the variation in 1/8192 of the jitter."""
    traces: dict[str, list[int]]
    """Delivery traces by name: ascending milliseconds, each one opportunity to send 1500 bytes; the last one is the
    period after which the trace begins anew."""
    course: list[Timed]
    """What happens beside processes: what links become, in the order of time, then faults."""
    hosts: list[HostsEntry]
    processes: list[Process]
    measure: Measure
    results: dict[str, dict[str, OwnMetric]]
    """Results of the lab's own, by process and name."""
    checks: list[Check]
