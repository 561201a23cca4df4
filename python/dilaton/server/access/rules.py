"""What people may do: decided here, of values, for every endpoint.

A *grant* says of a path, such as `/home/ann`, that somebody has a role there, or is denied one. It holds for all that
is below, if it propagates. Of all grants that say something about a permission on an object, those on the deepest path
count, and among these a denial; where there are none, the answer is no. A token has *scopes*, patterns of permissions:
they only narrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

NAME = r"[a-z][a-z0-9._-]{0,62}"
"""What people, roles and groups are called."""

PATH = r"^/$|^(/[a-z0-9][a-z0-9._-]{0,63}){1,6}$"
"""What grants are about: a folder, or a lab, template or run in one; / is everything."""

HOME = "/home/"
"""Below which everybody has a folder of their own."""

PERMISSIONS: Mapping[str, str] = {
    "Lab.Read": "See a lab and its versions.",
    "Lab.Write": "Make and change labs.",
    "Lab.Delete": "Delete labs.",
    "Lab.Share": "Have others read, operate or change a lab, as far as one may do so oneself.",
    "Template.Read": "See a template, and begin labs with it.",
    "Template.Write": "Keep labs as templates, and change these.",
    "Template.Delete": "Delete templates.",
    "Run.Read": "See a run: its state, clock, links, results and report.",
    "Run.Launch": "Have labs run.",
    "Run.Steer": "Hold, release, stop a run, change its TDF and links.",
    "Run.Console": "Have terminals in nodes of a run, and execute there what one likes.",
    "Run.Vpn": "Have a machine of one's own in the network of a run.",
    "Run.Files": "Fetch what programs of a run have written.",
    "Run.Delete": "Delete runs with all that they left.",
    "Request.Approve": "Approve or refuse runs that need more than their person may use, and say which come first.",
    "Host.Files": "Use labs that name files of the server's machine.",
    "Image.Write": "Bring images into the server's store from the registries that it takes, and remove them.",
    "Person.Read": "See people and what they may do.",
    "Person.Write": "Make people, let them in, change what they may do, close their accounts.",
    "Server.Read": "See how the server itself is doing.",
    "Audit.Read": "See who did what.",
}
"""All there are. A permission that is not here can neither be granted nor asked for."""

REACHING = ("Run.Console", "Run.Vpn", "Run.Files")
"""What who works in nodes of a run does."""

ROLES: Mapping[str, tuple[str, ...]] = {
    "administrator": ("*",),
    "teacher": ("Lab.*", "Template.*", "Run.*", "Request.*", "Person.Read"),
    "user": ("Lab.*", "Template.*", "Run.*"),
    "template-manager": ("Template.*",),
    "auditor": ("*.Read",),
    "reader": ("Lab.Read", "Template.Read", "Run.Read"),
    "operator": ("Lab.Read", "Template.Read", "Run.Read", "Run.Steer", *REACHING),
    "editor": ("Lab.Read", "Lab.Write", "Template.Read", "Run.Read", "Run.Steer", *REACHING),
}
"""The built-in roles, as patterns of permissions."""


@dataclass(frozen=True)
class Grant:
    """A role on a path, or its denial."""

    path: str
    role: str
    denies: bool = False
    propagates: bool = True

    def covers(self, path: str) -> bool:
        """Whether it says anything about the object at `path`."""
        return path == self.path or (self.propagates and path.startswith(self.path.rstrip("/") + "/"))

    def names(self, permission: str, roles: Mapping[str, tuple[str, ...]] = ROLES) -> bool:
        """Whether it says anything about a permission. A denial of a role that is not there any more is one of all."""
        return matches(permission, roles.get(self.role, ("*",) if self.denies else ()))


@dataclass(frozen=True)
class Access:
    """All that somebody may do: their grants, the scopes of the token that they came with (None: none), the roles."""

    grants: tuple[Grant, ...] = ()
    scopes: tuple[str, ...] | None = None
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: ROLES)

    def may(self, permission: str, path: str) -> bool:
        """Whether they have a permission on the object at `path`."""
        assert permission in PERMISSIONS, permission
        if self.scopes is not None and not matches(permission, self.scopes):
            return False
        found = [grant for grant in self.grants if grant.covers(path) and grant.names(permission, self.roles)]
        deepest = max((depth(grant.path) for grant in found), default=0)
        return bool(found) and not any(grant.denies for grant in found if depth(grant.path) == deepest)

    def permissions(self, path: str) -> list[str]:
        """All that they have on the object at `path`."""
        return [permission for permission in PERMISSIONS if self.may(permission, path)]

    def somewhere(self) -> list[str]:
        """All that they may have on some object: a grant names it, and no scope keeps it away. For what to offer, not
        for what to allow: another grant may deny it wherever there is something."""
        return [
            permission
            for permission in PERMISSIONS
            if (self.scopes is None or matches(permission, self.scopes))
            and any(not grant.denies and grant.names(permission, self.roles) for grant in self.grants)
        ]

    def inside(self, folders: Iterable[str]) -> list[str]:
        """Selects those folders about whose contents a grant may say something."""
        ours = [grant.path.rstrip("/") for grant in self.grants if not grant.denies]
        return [
            folder
            for folder in folders
            if any(f"{folder}/".startswith(f"{path}/") or path.startswith(f"{folder}/") for path in ours)
        ]


def depth(path: str) -> int:
    """How deep a path is; `/` is 1 deep, so that nothing is 0."""
    return 1 + len([part for part in path.split("/") if part])


def matches(permission: str, patterns: Iterable[str]) -> bool:
    """Whether a permission is one of those that patterns such as `Run.*` name."""
    return any(fnmatchcase(permission, pattern) for pattern in patterns)


def unknown_patterns(patterns: Iterable[str]) -> list[str]:
    """Those patterns that name no permission at all, which are mistakes."""
    return [pattern for pattern in patterns if not any(fnmatchcase(known, pattern) for known in PERMISSIONS)]


def home(person: str) -> str:
    """The folder of a person's own labs and runs."""
    return f"{HOME}{person}"
