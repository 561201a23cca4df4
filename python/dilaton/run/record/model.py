"""The parts of a run record: what `run.json` says.

Units are named in the fields; results have those of `dilaton.measure.results`. `docs/run.schema.json` is the same for
other languages.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dilaton.run.record.states import ProcessOutcome, State

FORMAT: Literal[1] = 1


class Part(BaseModel):
    """Base of every part of a record: immutable, and nothing unknown in it."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, json_schema_serialization_defaults_required=True
    )


class Dilaton(Part):
    """The program that made the run."""

    version: str
    commit: str | None
    """The commit of its source, with `-dirty` behind it when there were changes; None when it is not run from a
    checkout."""


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
    """The digest of the kernel's file; empty likewise."""
    guest_seccomp: bool = False
    """Whether it did not trace its programs (`+seccomp` behind its name)."""


class Time(Part):
    """Both times of a run."""

    drive: str
    tdf: int | float
    """Host seconds per virtual second, at the start; `plan.json` has the exact ratio."""
    virtual_s: float
    """How long it was from the run's virtual 0 to its end."""
    host_s: float
    """What that took."""
    boot_host_s: float
    """How long it took from the start until all nodes and links were up."""


class ProcessRecord(Part):
    """What became of a process. Instants are virtual time since the run's virtual 0."""

    name: str
    node: str
    argv: list[str]
    start_s: float | None = None
    """Its first start."""
    ready_s: float | None = None
    """When it was first seen to be ready; None of one that has no readiness, or of an older version."""
    end_s: float | None = None
    """Its last end."""
    restarts: int = 0
    """How often it was started again."""
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
    """The result in bit/s, seconds, as a ratio or a count; None when there was no such result."""


class LatenessRecord(Part):
    """Percentiles of how late timers or frames were, virtual microseconds; but for the most, within a factor of 2."""

    p50: float
    p99: float
    p999: float
    max: float


class FramesRecord(Part):
    """Frames that came from other guests, but for those of the agents, and how late the kernel was given them."""

    received: int
    lateness_us: LatenessRecord
    lateness_ns_counts: list[int]
    """How many frames had which lateness, as of timers."""


class ClockChange(Part):
    """A change of the running clock."""

    virtual_s: float
    """When, since the run's virtual 0."""
    host_s: float
    """When, since the release."""
    tdf: float | None
    """The TDF from then on, host seconds per virtual second; None: held."""
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
    """The share of virtual time that was out of bounds, 0..1."""
    out_of_bounds: list[OutOfBounds]
    """What was out of bounds, in the order of time."""
    tdf_needed: float | None = None
    """The highest that the verdict's advice names; None where it names none."""


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


class BusyRecord(Part):
    """How long a guest was busy without a pause: programs wait for its CPU for as long at most."""

    ns_counts: list[int]
    """Busy periods by length: bin i those in [2^(i-1), 2^i) virtual nanoseconds, bin 0 those of none."""
    ns_totals: list[int]
    """How long those of a bin were together."""
    interrupts: list[int]
    """How many interrupts, that is timers and arrivals of frames, the kernel got in those of a bin."""
    longest_ns: int
    idle_ns_totals: list[int]
    """How long the idle periods between them were together, by length."""


class StretchRecord(Part):
    """A stretch of virtual time."""

    begin_s: float
    end_s: float


class BeginRecord(Part):
    """When a program that the lab starts began to talk: it first connected, sent to an address, or accepted."""

    process: int
    """Which, by its place among the processes of the plan."""
    at_s: float | None
    """None: it did not."""


class ContentionRecord(Part):
    """For how long programs waited for a CPU that another program had."""

    ns_counts: list[int]
    """Stretches in which one did, by length: bins as of busy periods."""
    ns_totals: list[int]
    """How long those of a bin were together."""
    interrupts: list[int]
    """How many interrupts the kernel got in those of a bin."""
    longest_ns: int
    longest: list[StretchRecord] = Field(default_factory=list)
    """The longest of them, the longest first."""
    jobs_ns_counts: list[int] = Field(default_factory=list)
    """What programs were woken up for and have done, by how long it took them, waiting included."""
    begins: list[BeginRecord] = Field(default_factory=list)
    """When programs that the lab starts began to talk: of the first 64 of a guest, but for those that start others or
    execute another program, of which it is not known. Of an older version there are none."""
    waits: list[StretchRecord] = Field(default_factory=list)
    """For how long those that talk may have waited for the CPU from then on: the longest, the longest first."""


class GuestFidelity(Part):
    """How well a guest kept virtual time."""

    lateness_us: LatenessRecord
    timers: int
    """Served."""
    reads: int
    """How often the kernel read the clock."""
    lateness_ns_counts: list[int] = Field(default_factory=list)
    """Timers by lateness: bin 0 those on time, bin i those in [2^(i-1), 2^i) virtual nanoseconds."""
    frames: FramesRecord | None = None
    """Those that came over wires; None where none did."""
    busy: float | None = None
    """The share of virtual time in which it worked and did not idle, 0..1; None when no virtual time passed."""
    busiest_second: float | None = None
    """The same of its busiest virtual second; None of a shorter run."""
    busy_periods: BusyRecord | None = None
    """None of a run of an older version."""
    contention: ContentionRecord | None = None
    """None where the guest's kernel does not tell, or of an older version."""
    disk_requests: int = 0
    """How many requests its disks got since it was started."""
    disk_errors: int = 0
    """Those that this machine could not do."""
    shares: SharesRecord | None = None
    """None where no node has a CPU that is a share of its guest's."""
    counter_switch_ns: int = 0
    """What it took on this machine to disable the time-stamp counter and to enable it; 0 where it was not measured."""
    counter_given_up: bool = False
    """Whether the guest's kernel gives it up while programs run."""


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
    """The unit of value and bound."""
    advice: str
    """What to do."""
    tdf: float | None = None
    """The TDF that the advice names, with which a run may begin again; None where it names none, or what was seen was a
    moment of the host's."""


Level = Literal["confirmed", "valid", "suspect", "invalid"]
"""The best first."""

BELIEVED: frozenset[Level] = frozenset({"confirmed", "valid"})
"""The verdicts on a run whose results can be trusted."""


class VerdictRecord(Part):
    """Whether the results can be trusted; `docs/fidelity.md` explains it."""

    level: Level
    reasons: list[ReasonRecord]
    """The worst first; none when confirmed or valid."""


class ChangeRecord(Part):
    """A result at a TDF beside the same with more time for the CPU."""

    metric: str
    unit: str
    """The unit of both values: `bit/s`, `s`, `packets`, or none."""
    value: float
    """The mean of the runs at the TDF."""
    reference: float
    """The value of the runs with more time."""
    change: float | None
    """The Wasserstein distance of both, over the mean with more time; None where that is 0 and the other is not."""
    by_chance: float | None
    """What of that chance exceeds in 5 of 100 cases; None of a pair of runs, which cannot tell."""
    is_different: bool
    """Whether the change is beyond the tolerance and beyond chance."""


class ComparisonRecord(Part):
    """Runs at a TDF beside runs of the same seeds with more time for the CPU."""

    tdf: int | float
    reference_tdf: int | float
    runs: list[str]
    """Their directories, from that of the run; `.` is the run itself."""
    reference_runs: list[str]
    outcome: Literal["same", "changed", "unclear"]
    p: float | None
    """The p-value of all results together; None for a pair of runs."""
    changes: list[ChangeRecord]
    """What differs first, then by how far results are apart."""

    def told(self, most: int) -> list[ChangeRecord]:
        """The first of the changes, for people: without what was as expected in all runs."""
        return [each for each in self.changes if each.unit or each.value != 1 or each.change != 0][:most]


class ConfirmationRecord(Part):
    """What running the lab again with more time for the CPU has shown; `docs/confirm.md` explains it."""

    outcome: Literal["confirmed", "changed", "unclear"]
    what: str
    """What was seen, as a sentence with its numbers."""
    indicated: Level
    """The verdict before."""
    tolerance: float
    """The relative change that does not matter, 0..1."""
    tdf_needed: int | float | None
    """The least TDF that was tried from which on nothing changes; None if none was found, or the lab's is enough."""
    gave_up: str | None
    """Why no further runs were made, where some were needed."""
    runs: int
    """How many runs were made beside the run itself."""
    host_s: float
    """How much host time these took."""
    comparisons: list[ComparisonRecord]
    """TDF by TDF, that of the run first."""


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
    """How many frames its wires delivered, those of the agents included."""


class GuestRecord(Part):
    """A dilated kernel."""

    name: str
    memory_bytes: int
    """What it was given."""
    tdf: int | float | None = None
    """The guest's own TDF at the start."""
    clock_rate: int | float = 1
    """Seconds of its clock per virtual second; other than 1 where clocks run apart."""
    machine: str | None = None
    """On which of several machines it is; None: the run is on one, or has not booted yet."""
    fidelity: GuestFidelity | None = None
    """None as long as the run has not ended by itself."""
    waits: WaitRecord | None = None
    """None for the only guest of a run."""


class ImageRecord(Part):
    """An image that was the file tree of nodes."""

    name: str
    """As people write it."""
    digest: str
    """The digest of its manifest, by which it can be had again."""
    nodes: list[str]


class ReachedRecord(Part):
    """A port of a node to which somebody outside connected, or a node in whose network a machine outside was.

    What came in there no seed repeats.
    """

    node: str
    port: int | None
    """None: all that is reached from there, by a tunnel."""
    connections: int
    """Or tunnels."""
    first_s: float
    """When the first one was asked for, in virtual time."""


class Record(Part):
    """The whole of it."""

    format: Literal[1] = FORMAT
    lab: str
    state: State
    reason: str | None = None
    """Why the run failed or was aborted."""
    lost_machine: str | None = None
    """The machine whose loss ended a run over several, or over hosts; None where none was lost."""
    attempts: int = 1
    """How often it was begun; what the attempts before have left is in `attempt-<n>`."""
    lab_file: str | None = None
    """The lab's file, which may have changed since; None: it has none."""
    settings: list[str] = Field(default_factory=list)
    """What counts instead of what `lab.yaml` says, as PATH=VALUE."""
    seed: int
    dilaton: Dilaton
    host: Host
    time: Time
    guests: list[GuestRecord]
    images: list[ImageRecord] = Field(default_factory=list)
    """The images of nodes whose file tree is not this machine's."""
    fidelity: Fidelity | None = None
    """None as long as the run has not ended by itself."""
    verdict: VerdictRecord | None = None
    """None when there is no `fidelity`."""
    from_outside: list[ReachedRecord] = Field(default_factory=list)
    """By which ports the run was influenced from outside; none: by none."""
    confirmation: ConfirmationRecord | None = None
    """None where it was not asked for, or is not over."""
    processes: list[ProcessRecord] = Field(default_factory=list)
    """The processes, in the order of the lab."""
    checks: list[CheckRecord] = Field(default_factory=list)
    """The checks, in the order of the lab; empty as long as the run has not ended, or if it never started."""
    left_out: int = 0
    """How many of the files that guests have written on other machines are not here, where all of a machine's that is
    lost count as one; `left-out.txt` names them and says why."""

    @property
    def is_believed(self) -> bool:
        """Whether its verdict is `confirmed` or `valid`."""
        return self.verdict is not None and self.verdict.level in BELIEVED
