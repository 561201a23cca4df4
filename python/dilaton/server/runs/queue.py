"""Which of the runs that wait begins next: decided here, of values.

Each run needs something of the machine (`Needs`), and a person may use so much of it at once (`Quota`). What alone is
more than that is a *request*, which somebody has to approve; what is within waits for its turn. Of those that wait, the
highest priority comes first, then whose person has the fewest runs going on, then whose runs have taken the least time
of late, then what was asked for first. A run that would take its person beyond their quota is passed over meanwhile,
and keeps nobody else; one that was approved is not counted so.

A *reservation* keeps places for the runs of a folder, as those of a class, from one instant to another. Whoever is not
of it leaves as many places free as it has not taken yet, and so does, before it begins, a run that would reach into it,
as far as that is known. Nothing that goes on is ended for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Needs:
    """What a run needs; None: nothing is said.

    Attributes:
        cores: One for each guest.
        memory_bytes: Of all its guests.
        disk_bytes: What it may leave.
        host_s: How long it may go on, in seconds of the host; it is stopped then.
    """

    cores: int = 0
    memory_bytes: int = 0
    disk_bytes: int | None = None
    host_s: int | None = None


@dataclass(frozen=True)
class Quota:
    """What a person may use without being asked; None: as much as there is.

    The first three are of all their runs, the next two of each, the sixth of all that they have saved. The last is of
    the store of images, which may have so much when they put something there.
    """

    at_once: int | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    host_s: int | None = None
    saved_bytes: int | None = None
    images_bytes: int | None = None

    def beyond(self, needs: Needs) -> list[str]:
        """What a run alone needs beyond it, in words."""
        pairs = (
            ("cores", needs.cores, self.cores),
            ("bytes of memory", needs.memory_bytes, self.memory_bytes),
            ("bytes of disk", needs.disk_bytes, self.disk_bytes),
            ("seconds of the host", needs.host_s, self.host_s),
        )
        return [f"{asked} {what}, {most} without approval" for what, asked, most in pairs if _is_more(asked, most)]


@dataclass(frozen=True)
class Waiting:
    """A run that waits."""

    identity: str
    number: int
    person: str
    needs: Needs
    priority: int = 0
    is_approved: bool = False
    folder: str = ""


@dataclass(frozen=True)
class Going:
    """A run that goes on."""

    person: str
    needs: Needs
    folder: str = ""


@dataclass(frozen=True)
class Reserved:
    """Places that are kept for the runs of a folder and of those below it, from one instant until another."""

    folder: str
    places: int
    from_ms: int
    until_ms: int

    def is_of(self, folder: str) -> bool:
        """Whether the runs of a folder are its own."""
        return f"{folder}/".startswith(f"{self.folder}/")

    def concerns(self, now_ms: int, host_s: int | None) -> bool:
        """Whether a run that begins now goes on in its time; of one that has no limit that is known while it lasts."""
        end_ms = now_ms if host_s is None else now_ms + host_s * 1000
        return self.from_ms <= end_ms and now_ms < self.until_ms


def chosen(
    waiting: Iterable[Waiting],
    going: Iterable[Going],
    used_ms: Mapping[str, int],
    quota_of: Callable[[str], Quota],
    at_once: int,
    reserved: Sequence[Reserved] = (),
    now_ms: int = 0,
) -> list[str]:
    """The runs that begin now, in their order.

    Args:
        waiting: Those that wait.
        going: Those that go on.
        used_ms: How long runs of a person have gone on of late, in milliseconds of the host.
        quota_of: What a person may use.
        at_once: How many may go on.
        reserved: Which places are kept for whom.
        now_ms: Now, as `reserved` counts.
    """
    left, now, begun = list(waiting), list(going), []
    while len(now) < at_once:
        able = [
            one
            for one in left
            if (one.is_approved or _has_room(one, now, quota_of(one.person)))
            and len(now) + _kept(one, now, reserved, now_ms) < at_once
        ]
        if not able:
            break
        count = {one.person: sum(other.person == one.person for other in now) for one in able}
        best = min(able, key=lambda one: (-one.priority, count[one.person], used_ms.get(one.person, 0), one.number))
        begun.append(best.identity)
        left.remove(best)
        now.append(Going(best.person, best.needs, best.folder))
    return begun


def _kept(one: Waiting, now: list[Going], reserved: Sequence[Reserved], now_ms: int) -> int:
    """How many places are to stay free of others if this run begins."""
    return sum(
        max(0, each.places - sum(each.is_of(other.folder) for other in now))
        for each in reserved
        if not each.is_of(one.folder) and each.concerns(now_ms, one.needs.host_s)
    )


def _has_room(one: Waiting, now: list[Going], quota: Quota) -> bool:
    mine = [other.needs for other in now if other.person == one.person]
    return not (
        _is_more(len(mine) + 1, quota.at_once)
        or _is_more(sum(needs.cores for needs in mine) + one.needs.cores, quota.cores)
        or _is_more(sum(needs.memory_bytes for needs in mine) + one.needs.memory_bytes, quota.memory_bytes)
    )


def _is_more(asked: int | None, most: int | None) -> bool:
    """Whether something is beyond a bound; what is not said is beyond any."""
    return most is not None and (asked is None or asked > most)
