"""Watches the fidelity of a run while it goes, changes its TDF as the policy decides, and tells of violations.

A run whose TDF is a number is watched within limits that are that number: the TDF stays, but what it would have to be
is known, and `on_violation` can act on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol, TextIO

from dilaton.measure import numbers
from dilaton.plan import model
from dilaton.plan.model import Time
from dilaton.plan.network.bounds import Network
from dilaton.run.adaptive.epoch import COLUMNS, Decision, Epoch, Limits, Policy, rounded_up
from dilaton.run.adaptive.lateness import Lateness
from dilaton.run.adaptive.ledger import Ledger, Span
from dilaton.run.adaptive.meter import Meter, Watched
from dilaton.run.adaptive.pads15 import Pads15
from dilaton.run.files.directory import create_file
from dilaton.run.record.model import Adaptation, OutOfBounds, VerdictRecord

LOOK_HOST_S = 0.01
"""How often the clock pages are looked at; an epoch that takes less host time is longer for that."""


Violated = Callable[[Span], Awaitable[None]]
"""Told of violations; see `Watch.due`."""


class Steering(Protocol):
    """The clock of the run."""

    @property
    def tdf(self) -> Fraction:
        """The present TDF, whoever has given it."""

    async def adapt(self, tdf: Fraction, reason: str) -> None:
        """Changes it, unless somebody has given the run one."""


class Watch:
    """The watch over one run."""

    def __init__(self, guests: Sequence[Watched], planned: Time, network: Network) -> None:
        """Begins with the first epoch.

        Args:
            guests: Those of the run.
            planned: How the TDF may change.
            network: What lateness can spoil.
        """
        assert planned.watch, "made for runs that are watched"
        self._planned = planned.watch
        self._network = network
        self._most = self._planned.most.ratio
        self._meter = Meter(guests, self._planned.epoch_ns, planned.tdf.ratio, planned.drive)
        self._policy = _policy(self._planned, network)
        self._last_tdf = planned.tdf.ratio
        self._spans_told = 0
        self.ledger = Ledger(self._planned.epoch_ns)

    async def follow(self, log: Path, steering: Steering, violated: Violated) -> None:
        """Watches until it is cancelled.

        Args:
            log: Where a table with a row for every epoch is written.
            steering: Whose TDF follows.
            violated: Told of violations; see `due`.
        """
        with open(create_file(log), "w", buffering=1) as table:
            table.write(COLUMNS + "\n")
            try:
                while True:
                    await asyncio.sleep(LOOK_HOST_S)
                    if seen := self._meter.take(steering.tdf):
                        await self._act(seen, table, steering, violated)
            finally:
                if seen := self._meter.take(steering.tdf, is_last=True):
                    self._enter(seen, table)

    async def _act(self, seen: Epoch, table: TextIO, steering: Steering, violated: Violated) -> None:
        decision = self._enter(seen, table)
        if decision.tdf != seen.tdf:
            await steering.adapt(decision.tdf, decision.reason)
        if span := self.due():
            await violated(span)

    def _enter(self, seen: Epoch, table: TextIO) -> Decision:
        decision = self.step(seen)
        table.write(seen.row(in_bounds=not self.ledger.is_out))
        return decision

    def step(self, seen: Epoch) -> Decision:
        """What an epoch leads to."""
        self._policy, decision = self._policy.decide(seen)
        self.ledger.add(seen, decision, seen.judge(self._network))
        self._last_tdf = seen.tdf
        return decision

    def due(self) -> Span | None:
        """A violation that is to be told now. Each is told once: as soon as it is one; or, to run again with what it
        needed, when that is known, which is at its end, or when the TDF cannot rise any more."""
        spans = self.ledger.spans
        if not spans or self._spans_told == len(spans) or not spans[-1].is_violation:
            return None
        needed = spans[-1].tdf_needed
        if self._last_tdf < self._most:
            if self._planned.on_violation == "continue":
                return None
            if self._planned.on_violation == "retry":
                if self.ledger.is_out:
                    return None
                needed = self._last_tdf
        self._spans_told = len(spans)
        return replace(spans[-1], tdf_needed=needed)

    def last_due(self, verdict: VerdictRecord) -> Span | None:
        """What is to be told when the run is over: a violation that has not ended; or, of a run that as a whole is not
        valid, what needed most, of violations if there were any, or of what only the whole run shows."""
        spans = self.ledger.spans
        if spans and spans[-1].is_violation and self._spans_told < len(spans):
            return spans[-1]
        if verdict.level == "valid":
            return None
        of_epochs = max(spans, key=lambda span: (span.is_violation, span.tdf_needed), default=None)
        of_the_run = [reason for reason in verdict.reasons if reason.tdf is not None]
        if not of_the_run:
            return of_epochs
        worst = max(of_the_run, key=lambda reason: reason.tdf or 0)
        needed = Fraction(str(worst.tdf))
        if of_epochs and of_epochs.tdf_needed >= needed:
            return of_epochs
        return Span(0, self.ledger.virtual_ns, worst.what, rounded_up(self.ledger.tdf_mean or 1.0), needed)

    def summary(self) -> Adaptation:
        """What came of it."""
        ledger = self.ledger
        return Adaptation(
            policy=self._planned.policy,
            epochs=ledger.epochs,
            tdf_mean=ledger.tdf_mean,
            out_of_bounds_share=ledger.out_share,
            out_of_bounds=[
                OutOfBounds(begin_s=span.begin_ns / 1e9, end_s=span.end_ns / 1e9, what=span.what)
                for span in ledger.spans
            ],
        )


def _policy(planned: model.Watch, network: Network) -> Policy:
    """The policy of a run, at its start."""
    limits = Limits(planned.least.ratio, planned.most.ratio, planned.target, network.late_ns_max)
    return Pads15(limits) if planned.policy == "pads15" else Lateness(limits)


def explain(span: Span) -> str:
    """A violation as a sentence. While a run goes on it is known which TDF was not enough, but not which is: as its CPU
    gets faster, programs ask for more, and wait less for each other."""
    begin, end = numbers.duration(span.begin_ns / 1e9), numbers.duration(span.end_ns / 1e9)
    return f"out of bounds from {begin} to {end}: {span.what}; it needs more than tdf {numbers.tdf(span.tdf)}"
