"""Roles and groups that administrators write into a file, in force as soon as it is saved (as NEPTUNE's roles are).

The file is looked at when somebody asks for something, so that there is nothing to be told of a change. A file that has
mistakes, or is gone, changes nothing: what was read last holds, and the log says so. Half of a rule would be worse than
yesterday's.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from dilaton.lab.errors import LabError, Problem
from dilaton.lab.text import units
from dilaton.server.access.rules import NAME, PATH, ROLES, Grant, unknown_patterns
from dilaton.server.runs.queue import Quota
from dilaton.server.written import Written, read_written

LOG = logging.getLogger(__name__)

EVERYONE = "everyone"
"""Whose quota it is who has no other."""

Where = Literal["file", "set"]
"""Where a quota is said: in the file, or by the API."""

Size = Annotated[int | None, BeforeValidator(units.parse_size)]
"""Bytes, from a text as in a lab: 4GiB."""

SECOND_NS = 1_000_000_000

Duration = Annotated[
    int | None, Field(ge=1), BeforeValidator(lambda value: -(-units.parse_duration(value) // SECOND_NS))
]
"""Whole seconds, rounded up, from a text as in a lab: 30min."""

Name = Annotated[str, Field(pattern=f"^{NAME}$")]


class GroupGrant(Written):
    """A role on a path, or its denial, for all of a group; see `access.rules.Grant`."""

    path: str = Field(pattern=PATH, max_length=255)
    role: str
    denies: bool = False
    propagates: bool = True


class Group(Written):
    """People who may do the same: a course, a project."""

    members: tuple[Name, ...] = ()
    grants: tuple[GroupGrant, ...] = ()


class QuotaSaid(Written):
    """What somebody may use without being asked; see `runs.queue.Quota`."""

    at_once: int | None = Field(default=None, ge=1)
    cores: int | None = Field(default=None, ge=1)
    memory: Size = None
    disk: Size = None
    host_time: Duration = None
    saved: Size = None
    images: Size = None

    def quota(self) -> Quota:
        """As the queue takes it."""
        of_runs = (self.at_once, self.cores, self.memory, self.disk, self.host_time)
        return Quota(*of_runs, self.saved, self.images)


class PolicyFile(Written):
    """What the file may say."""

    roles: dict[Name, tuple[str, ...]] = Field(default={})
    """Patterns of permissions, by the role's name."""
    groups: dict[Name, Group] = Field(default={})
    quotas: dict[Name, QuotaSaid] = Field(default={})
    """By the name of a person or group, or `everyone`."""

    @field_validator("roles")
    @classmethod
    def _known(cls, roles: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for name, patterns in roles.items():
            if name in ROLES:
                raise ValueError(f"{name}: is built in; give yours another name")
            if unknown := unknown_patterns(patterns):
                raise ValueError(f"{name}: {unknown[0]}: names no permission")
        return roles


class Policy:
    """Roles and groups as they are now."""

    def __init__(self, path: Path | None = None) -> None:
        """Reads the file at `path`; None: there is none, and only what is built in.

        Raises:
            LabError: it has mistakes.
        """
        self._path = path
        self._lock = threading.Lock()
        self._said = PolicyFile()
        self._mark: tuple[int, ...] = ()
        self._version = 0
        self._claimed: dict[str, tuple[str, ...]] = {}
        self._kept: dict[str, Quota] = {}
        if path is not None:
            self._mark = _mark(path)
            self._said = _read(path)

    @property
    def version(self) -> int:
        """Another number after each change of the file that is in force."""
        self._now()
        return self._version

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """All roles, as patterns of permissions."""
        return {**ROLES, **self._now().roles}

    def grants(self, person: str) -> tuple[Grant, ...]:
        """What a person has by their groups."""
        return tuple(
            Grant(one.path, one.role, denies=one.denies, propagates=one.propagates)
            for group in self._of(person).values()
            for one in group.grants
        )

    def groups(self, person: str) -> list[str]:
        """The groups that a person is in."""
        return list(self._of(person))

    def claim(self, person: str, groups: Iterable[str]) -> None:
        """Has a person be in groups, of which those count that the file has, beside those that it says they are in."""
        with self._lock:
            self._claimed[person] = tuple(groups)
            self._version += 1

    def _of(self, person: str) -> dict[str, Group]:
        claimed = self._claimed.get(person, ())
        groups = self._now().groups.items()
        return {name: group for name, group in groups if person in group.members or name in claimed}

    def all_groups(self) -> list[str]:
        """The groups that there are."""
        return list(self._now().groups)

    def keep_quota(self, name: str, quota: Quota | None) -> None:
        """Has a person, a group or `everyone` have a quota, whatever the file says; None: as the file says."""
        with self._lock:
            self._kept = {known: kept for known, kept in self._kept.items() if known != name}
            if quota is not None:
                self._kept[name] = quota

    def own_quota(self, name: str) -> tuple[Quota, Where] | None:
        """The quota that a person, a group or `everyone` has by its own name, and where that is said."""
        if (kept := self._kept.get(name)) is not None:
            return kept, "set"
        said = self._now().quotas.get(name)
        return None if said is None else (said.quota(), "file")

    def quota(self, person: str) -> Quota:
        """What a person may use: their own quota, or that of the first of their groups that has one, or everyone's."""
        return self.quota_and_whose(person)[0]

    def quota_and_whose(self, person: str) -> tuple[Quota, str]:
        """What a person may use, and whose quota that is: their name, a group's or `everyone`; empty: there is none."""
        for name in (person, *self.groups(person), EVERYONE):
            if (own := self.own_quota(name)) is not None:
                return own[0], name
        return Quota(), ""

    def _now(self) -> PolicyFile:
        if self._path is None:
            return self._said
        with self._lock:
            if (mark := _mark(self._path)) != self._mark:
                self._mark = mark
                try:
                    self._said = _read(self._path)
                    self._version += 1
                except LabError as error:
                    LOG.error("roles: nothing is changed by a file with mistakes: %s", error)
            return self._said


def _mark(path: Path) -> tuple[int, ...]:
    """By which a file is known to be another."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(path: Path) -> PolicyFile:
    said = read_written(PolicyFile, path)
    known = {**ROLES, **said.roles}
    problems = [
        Problem(str(path), 0, 0, f"groups.{name}.grants", f"{one.role}: not one of {', '.join(known)}")
        for name, group in said.groups.items()
        for one in group.grants
        if one.role not in known
    ]
    if problems:
        raise LabError(problems)
    return said
