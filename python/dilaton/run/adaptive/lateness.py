"""The policy `lateness`: the least TDF at which timers are in time, nodes have their shares of the CPU and the CPU has
room; quick to rise, slow to fall.

**What is wanted.** Three things can be told of the TDF from an epoch at TDF f. Timers are served by the host, so their
lateness in *host* time is what it is, and virtual lateness goes as 1 / f: one in a hundred was later than L, in the
guest that was latest, and may be later than B, so f L / B is needed (a fourth more, as a bound is nothing to aim at).
And the epoch's work, busy fraction times f host seconds for each virtual second, has to leave the CPU idle enough: work
/ target. And what nodes with a share of the CPU should have had and lost is work that was not done, which needs room as
well. The largest is wanted.

**Growth.** A load that has grown brings more in the next epoch: one that grows steadily as much more again, and so does
one that came at once, as an epoch in the middle of which it came shows half of it. So where the TDF rises for work, it
leaves room for twice what the epoch brought over the one before. That is known only of two epochs with the same TDF,
the first not saturated: else more is done because more can be, and what waited is made up for.

**Saturation.** A CPU that is busy all the time shows how fast it is, not how much it is asked for. At first it is given
room for such growth, a quarter more at least. If that was not enough the TDF doubles with every epoch: a load of n
times the capacity is met after log2 n of them, and one more. Nodes that lose their shares do not wait for that.

**Shares.** Nodes with a share of the CPU also lose some of it where the CPU is far from busy, when packets keep a
program from it for a moment too long. How much depends on chance from epoch to epoch, so its mean over some epochs
counts, and each of them with a tenth at most, so that none makes the TDF rise alone. Whatever the guest does takes a
part of virtual time that is proportional to 1 / f, and so is the loss: the TDF is to be one with which it is half of
what the verdict lets pass.

**Programs that spin** take all the CPU that they are given, and doubling would never end. But a network whose CPU was
the bottleneck does more when it gets more: it serves more timers in a virtual second, one for every packet and hop. So
after a rise that does not bring 10 % more timers the next one is by a quarter only: what is still to be done may be
left from before, and programs that look for packets take the more the faster they are. Fewer timers than an epoch is
stretched for are the kernel's own, and never count as more. Two such rises in a row were in
vain: the TDF goes back to where it was, and saturation alone is not answered for a while, ten epochs the first time,
twice as long every further time. To go back is also the proof: rises by a quarter bring little each, and if the network
does a tenth less now than before, they were not in vain after all, and the TDF doubles from where they had led. The
while ends early when the network does a tenth more than it ever did when rises were in vain: that is a load which was
not there then, such as flows whose programs took all of the CPU as they started. What is late is always answered, and
so is what nodes have lost of their shares: they can take no more than these, so that a rise for them is not in vain.

**Waits.** Packets can be in time, and the CPU idle for a third of it, while programs wait for longer than their paths
notice (`dilaton.measure.waiting.waits`). How long they waited goes as 1 / f, and so does how long what they were woken
up for took them; an epoch says at which TDF too few would have waited or worked for too long. That is wanted, too, and
it is the verdict's own answer (`dilaton.measure.waiting.patience`). Where it is known on the work drive, on which no
packet waits for a timer, lateness is not asked for, as the verdict does not. A saturated CPU keeps everybody waiting,
and is answered as above. Programs that start keep few waiting, and are over when it is known, so that for waits, as for
lateness, the TDF rises to twice as much at most with every epoch.

**No oscillation.** It rises as soon as a tenth more is wanted, and falls only when the most that any of the last
`CALM_EPOCHS` epochs wanted is a fifth less: to a twentieth more than that, so that noise which they did not show does
not make it rise again, and to half at most. Work per virtual second falls with the TDF, since packets that wait for the
CPU are then handled together; so after a fall less is wanted than before, and it does not rise again unless the load
does. A load that comes and goes within these epochs keeps the TDF that its peaks need. Of an epoch with few timers it
is not known what one in a hundred is later than, so it does not rise for it; but where the latest of them is too late,
it does not fall either: an idle network on a loaded host is not in bounds for having little to be late for.

**Stalls.** Where the host takes the core away for some milliseconds, more than one timer in a hundred of an epoch can
be late, by a hundred times what it may be. That is over when it is known, and a hundred times the TDF would then be
kept for `CALM_EPOCHS`. So for lateness alone the TDF rises to twice as much at most, and again while it lasts. Only the
first epoch may ask for eight times as much: where the run starts was reckoned for an ordinary host, not for this one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dilaton.measure import numbers
from dilaton.run.adaptive.epoch import TIMERS_MIN, Decision, Epoch, Limits, rounded_up

LATENESS_MARGIN = 1.25
SATURATED = 0.95
SATURATED_RISE_MIN = Fraction(5, 4)
RISE_MIN = 1.1
LATE_RISE_MAX = 2
LATE_RISE_MAX_FIRST = 8
LOST_EPOCHS = 32
SHARE_LOST_WANTED = 0.01
LOST_MARGIN = 2
LOST_MAX = 0.1
FALL_MIN = 0.8
FALL_ROOM = 1.05
CALM_EPOCHS = 10

MORE_TIMERS = 1.1
VAIN_RISES = 2
REST_EPOCHS = 10


@dataclass(frozen=True)
class Push:
    """Rises for saturation alone, which may be in vain.

    Attributes:
        base: The TDF before the first that was.
        timers_per_s: Before the last one.
        in_vain: How many in a row did not bring more timers.
    """

    base: Fraction
    timers_per_s: float
    in_vain: int = 0

    def after(self, seen: Epoch) -> Push:
        """Once the epoch behind the last rise is seen."""
        if _does_more(seen, self.timers_per_s):
            return Push(seen.tdf, seen.timers_per_s)
        return Push(self.base, seen.timers_per_s, self.in_vain + 1)


@dataclass(frozen=True)
class Lateness:
    """The policy.

    Attributes:
        limits: What it keeps to.
        recent: What the last epochs wanted.
        push: The rises for saturation that are under way.
        rest: For how many more epochs saturation is not answered.
        rest_next: For how many it will be when rises are in vain the next time.
        vain_timers_per_s: The most that the network did when rises were in vain.
        before: The last epoch.
        peak: The epoch after rises in vain, until it is known whether the network does less without them.
        lost: The part of their CPUs that nodes with a share lost, times the TDF: a mean of which an epoch is one part
            in `LOST_EPOCHS`.
    """

    limits: Limits
    recent: tuple[Fraction, ...] = ()
    push: Push | None = None
    rest: int = 0
    rest_next: int = REST_EPOCHS
    vain_timers_per_s: float = 0.0
    before: Epoch | None = None
    peak: Epoch | None = None
    lost: float = 0.0

    def decide(self, seen: Epoch) -> tuple[Lateness, Decision]:
        """See `Policy`."""
        lost = min(seen.share_lost, LOST_MAX) * float(seen.tdf)
        lost = self.lost + (lost - self.lost) / LOST_EPOCHS
        policy, decision = replace(self, peak=None, lost=lost)._decide(seen, self.peak)
        return replace(policy, before=seen, lost=lost), decision

    def _decide(self, seen: Epoch, peak: Epoch | None) -> tuple[Lateness, Decision]:
        bound = None if seen.keeps_instants else self.limits.late_ns_max
        for_lateness = float(seen.tdf) * LATENESS_MARGIN * seen.late_ns / bound if bound else 0.0
        is_starving = seen.share_lost > SHARE_LOST_WANTED
        if seen.busy > SATURATED and for_lateness <= seen.tdf and not is_starving:
            return self._saturated(seen, peak)
        rested = replace(self, push=None, rest=max(0, self.rest - 1))
        for_work = seen.demand / self.limits.target
        if seen.busy > SATURATED:
            for_work = max(for_work, float(2 * seen.tdf if is_starving else self._risen(seen)))
        elif for_work > RISE_MIN * seen.tdf:
            for_work += self._growth(seen) / self.limits.target
        lost = seen.share_lost if is_starving else 0.0
        for_shares = LOST_MARGIN * self.lost / SHARE_LOST_WANTED
        if for_shares > for_work:
            for_work, lost = for_shares, self.lost / float(seen.tdf)
        for_waits = seen.tdf_for_waits if seen.busy <= SATURATED else 0.0
        may_fall = not bound or seen.few_late_ns <= bound
        wanted = rounded_up(max(for_lateness, for_waits, for_work, 1e-6 if may_fall else float(seen.tdf)))
        if max(for_lateness, for_waits) > for_work:
            why = f"1 % of timers later than {numbers.duration(seen.late_ns / 1e9)}"
            if seen.most_waiting and for_waits > for_lateness:
                why = seen.most_waiting.said()
            rise_max = LATE_RISE_MAX if self.before else LATE_RISE_MAX_FIRST
            most = max(rise_max * seen.tdf, rounded_up(max(for_work, 1e-6)))
            return rested._follow(seen, wanted, why, most)
        lacking = f", nodes lacked {100 * lost:.2g}% of their CPUs" if lost else ""
        return rested._follow(seen, wanted, f"busy {seen.busy:.0%}{lacking}")

    def _saturated(self, seen: Epoch, peak: Epoch | None) -> tuple[Lateness, Decision]:
        """Decides for an epoch in which all was in time, but without a pause."""
        if peak and _does_more(peak, seen.timers_per_s):
            retried = replace(self, push=Push(seen.tdf, seen.timers_per_s), rest=0)
            return retried._follow(seen, 2 * peak.tdf, f"busy {seen.busy:.0%}, and less was done than before")
        if self.rest and not _does_more(seen, self.vain_timers_per_s):
            waiting = replace(self, rest=self.rest - 1, recent=())
            return waiting, Decision(seen.tdf, seen.tdf)
        if self.limits.within(2 * seen.tdf) == seen.tdf:
            return replace(self, push=None, recent=()), Decision(seen.tdf, 2 * seen.tdf)
        push = self.push.after(seen) if self.push else Push(seen.tdf, seen.timers_per_s)
        if push.in_vain >= VAIN_RISES:
            most = max(self.vain_timers_per_s, seen.timers_per_s)
            given_up = Lateness(
                self.limits, rest=self.rest_next, rest_next=2 * self.rest_next, vain_timers_per_s=most, peak=seen
            )
            back = self.limits.within(push.base)
            return given_up, Decision(back, back, "programs take all CPU that they are given")
        risen = SATURATED_RISE_MIN * seen.tdf if push.in_vain else self._risen(seen)
        return replace(self, push=push, rest=0)._follow(seen, risen, f"busy {seen.busy:.0%}")

    def _risen(self, seen: Epoch) -> Fraction:
        """The TDF that a saturated CPU is given, or should be where it may not rise; see the head of this file."""
        may_rise = self.limits.within(2 * seen.tdf) != seen.tdf
        if not may_rise or self.before is None or self.before.busy > SATURATED:
            return 2 * seen.tdf
        room = (seen.work + self._growth(seen)) / self.limits.target
        return rounded_up(max(float(SATURATED_RISE_MIN * seen.tdf), room))

    def _growth(self, seen: Epoch) -> float:
        """The work that the epoch brought over the one before, host seconds per virtual second; 0 if not known."""
        before = self.before
        if before is None or before.busy > SATURATED or before.tdf != seen.tdf:
            return 0.0
        return max(0.0, seen.work - before.work)

    def _follow(
        self, seen: Epoch, wanted: Fraction, why: str, most: Fraction | None = None
    ) -> tuple[Lateness, Decision]:
        """Towards what is wanted: up at once, to `most` if there is one; down when it has been less for a while."""
        recent = (*self.recent, wanted)[-CALM_EPOCHS:]
        goal = seen.tdf
        if wanted > RISE_MIN * seen.tdf:
            goal = wanted if most is None else min(wanted, most)
        elif len(recent) == CALM_EPOCHS and max(recent) < FALL_MIN * seen.tdf:
            goal = max(rounded_up(FALL_ROOM * float(max(recent))), seen.tdf / 2)
            why = f"{why}: less was needed for {CALM_EPOCHS} epochs"
        tdf = self.limits.within(goal)
        changed = tdf != seen.tdf
        return replace(self, recent=() if changed else recent), Decision(tdf, wanted, why if changed else "")


def _does_more(seen: Epoch, timers_per_s: float) -> bool:
    """Whether the network did more in an epoch than at some rate."""
    return seen.timers >= TIMERS_MIN and seen.timers_per_s > MORE_TIMERS * timers_per_s
