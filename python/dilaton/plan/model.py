"""The plan: everything that a run will do, complete and explicit, as one JSON document.

The plan is the contract between `plan/` (which writes it), `host/` (which starts its guests) and the agent (which
carries it out inside them). Executing a plan adds no decision. Units are fixed and named in the fields: nanoseconds
of *virtual* time, bytes, bits per second, ratios in 0..1. The agent reads the same document with
`crates/agent/src/plan.rs`; a change here is a change there and a new `FORMAT`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

FORMAT: Final = 1

Nanoseconds = Annotated[int, Field(ge=0)]


class Part(BaseModel):
    """Base of every part of the plan: immutable, and nothing unknown in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Tdf(Part):
    """Time dilation factor: host seconds per virtual second, as the exact ratio numerator / denominator."""

    numerator: int = Field(gt=0)
    denominator: int = Field(gt=0)


class Time(Part):
    """What drives virtual time, and how fast."""

    drive: Literal["wall", "work"]
    tdf: Tdf


class Netem(Part):
    """One netem queue discipline; a field that is 0 or None is not configured.

    `limit_packets` counts the packets that the discipline holds, those in transit included when `delay_ns` is set.
    """

    kind: Literal["netem"] = "netem"
    delay_ns: Nanoseconds = 0
    rate_bit_per_s: int | None = Field(default=None, gt=0)
    loss: float = Field(default=0.0, ge=0.0, le=1.0)
    limit_packets: int = Field(gt=0)


class Neighbour(Part):
    """A permanent entry of the neighbour table, so that no first packet waits for ARP."""

    address: str
    mac: str


class Interface(Part):
    """A network interface of a node, and the chain of queue disciplines on its egress (outermost first)."""

    name: str
    mac: str
    mtu: int
    offload: bool
    addresses: list[str]
    """With prefix length, as "10.0.0.0/31"."""
    neighbours: list[Neighbour]
    qdiscs: list[Netem]


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


class Bridge(Part):
    """A kernel bridge over all interfaces of a node."""

    name: str
    stp: bool
    """Whether it runs the spanning tree protocol (IEEE 802.1D)."""


class Image(Part):
    """Where a node's file tree comes from: `host` is this machine's root, read-only under an overlay."""

    kind: Literal["host"]


class Node(Part):
    """An emulated machine."""

    name: str
    guest: str
    image: Image
    interfaces: list[Interface]
    bridge: Bridge | None
    loopback: list[str]
    """Addresses of the interface `lo` besides 127.0.0.1 and ::1, with prefix length."""
    routes: list[Route]
    sysctls: dict[str, str]
    """Written below /proc/sys in the node, keys with slashes, e.g. `net/ipv4/ip_forward`."""


class End(Part):
    """One end of a link."""

    node: str
    interface: str


class Link(Part):
    """A point-to-point link. What its directions do is in the queue disciplines of its two interfaces."""

    name: str
    ends: tuple[End, End]


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


class Process(Part):
    """A program to run in a node.

    It starts at `start_ns`, or when everything in `after` has happened, whichever is later. What `after` waits for is
    the readiness of the other process if it has a `ready`, else its start if it is in the background, else its end
    with the expected exit status.
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
    after: list[str]
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
    stdout: str
    stderr: str
    """Paths relative to the run directory."""


class Guest(Part):
    """A dilated kernel."""

    name: str
    memory_bytes: int
    modules: list[str]
    """Kernel modules to load, in this order; their dependencies come by themselves."""
    sysctls: dict[str, str]
    """Of the kernel as a whole, written below /proc/sys before any node exists; keys with slashes."""


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
    captures: list[Capture]


class Check(Part):
    """An expectation on the results, kept as written and evaluated after the run (see `measure/expect.py`)."""

    text: str


class Plan(Part):
    """The whole of it."""

    format: Literal[1] = FORMAT
    lab: str
    seed: int
    time: Time
    stop_after_ns: Nanoseconds | None
    grace_ns: Nanoseconds
    """Virtual time between SIGTERM and SIGKILL when processes are stopped."""
    guests: list[Guest]
    nodes: list[Node]
    links: list[Link]
    hosts: list[HostsEntry]
    processes: list[Process]
    measure: Measure
    checks: list[Check]
