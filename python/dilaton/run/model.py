"""The parts of a run record: what `run.json` says.

Units are named in the fields; results have those of `dilaton.measure.results`. `docs/run.schema.json` is the same for
other languages.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT: Literal[1] = 1

State = Literal["prepare", "boot", "ready", "running", "collecting", "finished", "failed", "aborted"]
"""The states of a run, in their order; it ends in one of the last three."""

FINAL_STATES: frozenset[State] = frozenset({"finished", "failed", "aborted"})

ProcessOutcome = Literal["not-started", "running", "exited", "signalled", "start-failed", "skipped"]
"""What became of a process; `running` in the record of a run that has ended: it ended with its guest."""


class Part(BaseModel):
    """Base of every part of a record: immutable, and nothing unknown in it."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_serialization_defaults_required=True, use_attribute_docstrings=True
    )


class Dilaton(Part):
    """The program that made the run."""

    version: str
    commit: str | None
    """Of its source, with `-dirty` behind it when there were changes; None when it is not run from a checkout."""


class Host(Part):
    """The machine of the run."""

    cpu: str
    cores: int
    memory_bytes: int
    kernel: str
    guest_kernel: str
    """The release of the kernel in its guests; empty as long as none has booted."""
    guest_kernel_path: str = ""
    """`debian` for the stock kernel, else the file of one of our own; empty likewise."""
    guest_kernel_sha256: str = ""
    """Of the kernel's file; empty likewise."""


class Time(Part):
    """Both times of a run."""

    drive: str
    tdf: int | float
    """Host seconds per virtual second, at the start; `plan.json` has the exact ratio."""
    virtual_s: float
    """From the run's virtual 0 to its end."""
    host_s: float
    """What that took."""
    boot_host_s: float
    """From the start to all nodes and links up."""


class ProcessRecord(Part):
    """What became of a process. Instants are virtual time since the run's virtual 0."""

    name: str
    node: str
    argv: list[str]
    start_s: float | None = None
    end_s: float | None = None
    exit: int | None = None
    """Exit status, 0..255."""
    signal: int | None = None
    """Number of the signal that ended it."""
    stopped: bool = False
    """Whether we ended it: with the run, or when its time was over."""
    expected: bool = False
    """Whether it ended as the lab expects."""
    outcome: ProcessOutcome = "not-started"
    reason: str | None = None
    """Why it is not as expected, or the last line of its standard error."""
    result: dict[str, Any] | None = None
    """What was read from its output; `{"error": why}` when that failed; None when nothing is read from it."""


class CheckRecord(Part):
    """An expectation of the lab, and what was measured."""

    text: str
    passed: bool
    value: int | float | None
    """In bit/s, seconds, a ratio or a count; None when there was no such result."""


class LatenessRecord(Part):
    """Percentiles of how late timers were served, in virtual microseconds; but for the most, within a factor of 2."""

    p50: float
    p99: float
    p999: float
    max: float


class ClockChange(Part):
    """A change of the running clock."""

    virtual_s: float
    """When, since the run's virtual 0."""
    host_s: float
    """When, since the release."""
    tdf: float | None
    """From then on, host seconds per virtual second; None: held."""
    reason: str
    """What changed it."""


class OutOfBounds(Part):
    """Virtual time in which fidelity was out of bounds."""

    begin_s: float
    end_s: float
    what: str
    """What was seen."""


class Adaptation(Part):
    """What the watch over a run saw, and what it did to the TDF."""

    policy: str
    epochs: int
    tdf_mean: float | None
    """Over virtual time; None when no epoch was over before the run was."""
    out_of_bounds_share: float
    """Of virtual time, 0..1."""
    out_of_bounds: list[OutOfBounds]
    """In the order of time."""
    tdf_needed: float | None
    """More than the TDF could rise to, as far as could be told; None when it was enough."""


class SharesRecord(Part):
    """What CPUs that are shares of their guests' have done, since the first program of a node with one."""

    charged_s: float
    """Host seconds of work that guests did for nodes with a CPU of their own."""
    uncharged_s: float
    """All other work of theirs: interrupts, with the packets that they handle, the agent, other nodes, sleeps."""
    busy_s: float
    """Virtual seconds in which the nodes' CPUs were busy, summed."""
    lost_s: float
    """Virtual seconds that nodes should have had of the guests' CPUs and did not, summed."""

    @property
    def uncharged_share(self) -> float:
        """The part of the guests' work that was charged to no node, 0..1."""
        return self.uncharged_s / (self.charged_s + self.uncharged_s) if self.uncharged_s else 0.0

    @property
    def lost_share(self) -> float:
        """The part of what the nodes should have had that they did not have, 0..1."""
        return self.lost_s / (self.busy_s + self.lost_s) if self.lost_s else 0.0


class GuestFidelity(Part):
    """How well a guest kept virtual time."""

    lateness_us: LatenessRecord
    timers: int
    """Served."""
    reads: int
    """Of the clock, by the kernel."""
    lateness_ns_counts: list[int] = Field(default_factory=list)
    """Timers by lateness: bin 0 those on time, bin i those in [2^(i-1), 2^i) virtual nanoseconds."""
    busy: float | None = None
    """The share of virtual time in which it worked and did not idle, 0..1; None when no virtual time passed."""
    busiest_second: float | None = None
    """The same of its busiest virtual second; None of a shorter run."""
    disk_requests: int = 0
    """To its disks since it was started."""
    disk_errors: int = 0
    """Those that this machine could not do."""
    shares: SharesRecord | None = None
    """None where no node has a CPU that is a share of its guest's."""


class Fidelity(GuestFidelity):
    """How well virtual time was kept: timers and readings of all guests together, and the busiest guest."""

    tdf_trace: list[ClockChange] = Field(default_factory=list)
    """Every change of the clock from its release on."""
    adaptation: Adaptation | None = None
    """None of a run that was not watched."""
    measuring_share: float | None = None
    """The part of the guests' work that samples and captures took, 0..1; None where nothing was measured."""


class ReasonRecord(Part):
    """A bound that the run exceeded."""

    level: Literal["suspect", "invalid"]
    what: str
    """What was seen."""
    value: float
    bound: float
    unit: str
    """Of value and bound."""
    advice: str
    """What to do."""


class VerdictRecord(Part):
    """Whether the results can be trusted; `docs/fidelity.md` explains it."""

    level: Literal["valid", "suspect", "invalid"]
    reasons: list[ReasonRecord]
    """The worst first; none when valid."""


class WaitRecord(Part):
    """What it cost a guest to keep to the others' virtual time."""

    windows: int
    """Times that it was let run on."""
    waits: int
    """Times that it had to wait for that."""
    waited_host_s: float
    agreements: int
    """Times that it agreed with the others how far they may run."""
    wakes: int
    """Times that it woke one of them."""
    frames_sent: int
    frames_received: int
    """By its wires, those of the agents included."""


class GuestRecord(Part):
    """A dilated kernel."""

    name: str
    memory_bytes: int
    """What it was given."""
    tdf: int | float | None = None
    """Its own at the start."""
    clock_rate: int | float = 1
    """Seconds of its clock per virtual second; other than 1 where clocks run apart."""
    fidelity: GuestFidelity | None = None
    """None as long as the run has not ended by itself."""
    waits: WaitRecord | None = None
    """None for the only guest of a run."""


class Record(Part):
    """The whole of it."""

    format: Literal[1] = FORMAT
    lab: str
    state: State
    reason: str | None = None
    """Why the run failed or was aborted."""
    attempts: int = 1
    """How often it was begun; what the attempts before have left is in `attempt-<n>`."""
    seed: int
    dilaton: Dilaton
    host: Host
    time: Time
    guests: list[GuestRecord]
    fidelity: Fidelity | None = None
    """None as long as the run has not ended by itself."""
    verdict: VerdictRecord | None = None
    """None when there is no `fidelity`."""
    processes: list[ProcessRecord] = Field(default_factory=list)
    """In the order of the lab."""
    checks: list[CheckRecord] = Field(default_factory=list)
    """In the order of the lab; empty as long as the run has not ended, or if it never started."""
