"""What a server answers, as whoever asks it sees it: dictionaries, as JSON has them, with the types that are told here.

A server checks what it answers by models of its own, which take a package that clients need not have; a test holds that
both say the same. What a run's control socket answers, and a server only passes on, is in `run.control.answers`.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from dilaton.run.control.answers import Clock, GuestShown, ProcessShown, Standing, Timeliness

RunState = Literal[
    "requested", "queued", "starting", "running", "held", "finished", "failed", "aborted", "refused", "cancelled"
]

Value = str | int | float | bool | None
"""Of a field of a lab."""


class Needed(TypedDict):
    """What a run needs of the machine; null: nothing is said."""

    cores: int
    memory_bytes: int
    disk_bytes: int | None
    host_s: int | None


class RunShown(TypedDict):
    """A run."""

    run: str
    """Its identity."""
    number: int
    name: str
    """The name of its lab."""
    lab: str | None
    version: int
    folder: str
    path: str
    person: str
    state: RunState
    reason: str | None
    """Why it did not finish."""
    verdict: str | None
    virtual_s: float | None
    """How far it came; null as long as it is not over."""
    needs: Needed
    priority: int
    created_ms: int
    started_ms: int | None
    ended_ms: int | None
    sweep: str | None
    point: int | None


class SweptField(TypedDict):
    """A field of a lab, and the values that it has in turn."""

    path: str
    values: list[str]


class SweepShown(TypedDict):
    """A sweep."""

    sweep: str
    """Its identity."""
    number: int
    name: str
    lab: str | None
    version: int
    folder: str
    path: str
    person: str
    fields: list[SweptField]
    repeat: int
    created_ms: int
    states: dict[str, int]


class WholeSweep(SweepShown):
    """A sweep with its runs, in their order."""

    runs: list[RunShown]


class LabShown(TypedDict):
    """A lab."""

    lab: str
    """Its identity."""
    name: str
    folder: str
    path: str
    version: int
    """The newest."""
    created_ms: int
    permissions: list[str]


class StatusShown(TypedDict):
    """How far a run that goes on has come, and how well."""

    suspended: bool
    notice: str | None
    clock: Clock | None
    fidelity: Timeliness
    verdict: Standing | None
    processes: list[ProcessShown]
    guests: list[GuestShown]


class FileShown(TypedDict):
    """A file that a run has left."""

    path: str
    size_bytes: int


class Brief(TypedDict):
    """A set of values in brief; null where there are too few."""

    count: int
    mean: float | None
    cov: float | None
    iqr: float | None


class Apart(TypedDict):
    """How far two sets of values are apart."""

    ks: float | None
    p: float | None
    wasserstein: float | None
    relative: float | None


class ComparedRow(TypedDict):
    """One metric of one run, or set of runs, beside that of the reference."""

    metric: str
    unit: str
    run: str
    reference: Brief
    other: Brief
    distance: Apart
    is_different: bool
    by_chance: float | None
    is_untold: bool


class ComparedTogether(TypedDict):
    """All metrics of a set of runs together beside those of the reference."""

    run: str
    p: float | None
    is_different: bool


class Compared(TypedDict):
    """What `dilaton compare` says."""

    rows: list[ComparedRow]
    missing: list[str]
    together: list[ComparedTogether]
    least_p: float
    verdict: str
    is_different: bool


class ImageShown(TypedDict):
    """An image of a server's store."""

    name: str
    digest: str
    size_bytes: int
    argv: list[str]


class SavedLab(TypedDict):
    """A lab that was saved with what its nodes had."""

    name: str
    lab: str
    """Its own name."""
    virtual_s: float
    """Where the run was."""
    settings: list[str]
    images: list[str]
    person: str
    """Who has saved it."""
    size_bytes: int


class BrokenLab(TypedDict):
    """A saved lab that cannot be used."""

    name: str
    wrong: str


class SavedLabs(TypedDict):
    """The saved labs of a folder."""

    saved: list[SavedLab]
    broken: list[BrokenLab]


class RepeatedShown(TypedDict):
    """What was compared of a run with the one that it repeats, and is the same."""

    events: int
    bytes: int
