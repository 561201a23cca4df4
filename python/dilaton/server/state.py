"""What all endpoints share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cached_property

from dilaton.server.access.callers import OneTime
from dilaton.server.access.passwords import Passwords
from dilaton.server.access.policy import Policy
from dilaton.server.access.refusals import Refusals
from dilaton.server.access.single_sign_on import SingleSignOn
from dilaton.server.bell import Bell
from dilaton.server.database.events import Newest
from dilaton.server.database.store import Store
from dilaton.server.doors.doors import Doors
from dilaton.server.images.keeping import Images
from dilaton.server.labs.checking import Checker
from dilaton.server.metrics import Metrics
from dilaton.server.runs.bounds import Bounds
from dilaton.server.runs.keeper import Keeper
from dilaton.server.runs.terminals import Terminals
from dilaton.server.runs.tunnels import Tunnels
from dilaton.server.saved.keeping import Saved
from dilaton.server.settings import BACK, Settings

COMPARISONS_AT_ONCE = 2
"""Each is a process that reads all that its runs have left."""


@dataclass(frozen=True)
class State:
    """What all endpoints share."""

    settings: Settings
    store: Store
    one_time: OneTime
    checker: Checker
    images: Images
    saved: Saved
    keeper: Keeper
    bell: Bell
    policy: Policy
    terminals: Terminals = field(default_factory=Terminals)
    comparing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(COMPARISONS_AT_ONCE))
    tunnels: Tunnels = field(default_factory=Tunnels)
    doors: Doors = field(default_factory=Doors)
    sessions: Bounds = field(default_factory=lambda: Bounds("programs in nodes"))
    captures: Bounds = field(default_factory=lambda: Bounds("captures"))
    passwords: Passwords = field(default_factory=Passwords)
    refusals: Refusals = field(default_factory=Refusals)

    @cached_property
    def single_sign_on(self) -> SingleSignOn | None:
        """By which people log in who are known to a provider."""
        provider = self.settings.provider
        return None if provider is None else SingleSignOn(provider, self.settings.origin + BACK)

    @cached_property
    def newest(self) -> Newest:
        """The newest events."""
        return Newest(self.store, self.bell)

    @cached_property
    def metrics(self) -> Metrics:
        """How the server is doing."""
        return Metrics(self.store, self.terminals)
