"""What the programs of a run say about its fidelity, for the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dilaton.measure import numbers
from dilaton.measure.reasons import Reason
from dilaton.measure.waiting.answered import Answered, answered
from dilaton.measure.waiting.asked import asked_bit_per_s
from dilaton.measure.waiting.begins import Key, begun
from dilaton.measure.waiting.ended import LATE_END_MAX, Ended, ended
from dilaton.measure.waiting.filled import Filled
from dilaton.measure.waiting.offered import Offered, offered
from dilaton.measure.waiting.together import Life
from dilaton.plan.model import Plan
from dilaton.plan.network.conversations import spoken
from dilaton.run.record.model import GuestFidelity, ProcessRecord


@dataclass(frozen=True)
class Programs:
    """What is known of the programs of a run when it is over.

    Attributes:
        sent: What those sent that were told at which rate.
        answers: What the answers took of which it is known what they take.
        ended: How flows of UDP ended.
        lives: When those were there that ended as they should.
        filled: Whether all that they measured is flows that filled their bottlenecks.
        shares_filled: Whether it is of what they measured on nodes with a share of a CPU, or between these and others.
    """

    sent: Sequence[Offered] = ()
    answers: Sequence[Answered] = ()
    ended: Sequence[Ended] = ()
    lives: Sequence[Life] = ()
    filled: bool = False
    shares_filled: bool = False


NOBODY = Programs()


def programs_of(plan: Plan, processes: Sequence[ProcessRecord], guests: Sequence[GuestFidelity] = ()) -> Programs:
    """What became of the processes of a plan, and what the clocks of its guests say of them."""
    done = [(each.node, each.name, each.result) for each in processes if each.exit == 0]
    slow = {node.name for node in plan.nodes if node.cpu is not None}
    found = Filled.of(plan, done)
    return Programs(
        sent=offered(plan, done),
        answers=answered(plan, done),
        ended=ended(plan, done),
        lives=lives_of(plan, processes, guests),
        filled=found.all(),
        shares_filled=found.all_of(slow),
    )


def late_ends(programs: Programs) -> list[Reason]:
    """What is wrong with how flows of UDP ended: the worst of those of whose end iperf3 heard too late."""
    worst = max(programs.ended, key=lambda each: each.share, default=None)
    if worst is None or worst.share <= LATE_END_MAX:
        return []
    late, share = numbers.duration(worst.late_s, 3), numbers.significant(worst.share * 100, 3)
    what = (
        f"iperf3 heard of the end of {worst.process} on {worst.node} {late} later than its way explains, {share} % of "
        "the time by which it divides what came"
    )
    advice = (
        "let it send for longer (-t): whether one packet finds room in a full queue decides when iperf3 hears of that"
    )
    return [Reason("suspect", what, worst.share, LATE_END_MAX, "ratio", advice)]


def lives_of(plan: Plan, processes: Sequence[ProcessRecord], guests: Sequence[GuestFidelity] = ()) -> list[Life]:
    """When the programs of a run were there that ended as they should, or with the run."""
    paths = spoken(plan.processes, plan.hosts, plan.nodes, plan.links, plan.course)
    behind = {process.name for process in plan.processes if process.background}
    keys = [(process.node, process.name) for process in plan.processes]
    ends = {key: {key[0], *(node for path in paths.get(key, ()) for node in path.ends)} for key in keys}
    started = {(each.node, each.name): each.start_s for each in processes if not each.restarts}
    when = begun(plan, _talked(plan, guests), started, {each.name: each.ready_s for each in processes}, ends)

    def life(of: ProcessRecord, begin_s: float, end_s: float) -> Life:
        key = (of.node, of.name)
        ways = [each for path in paths.get(key, ()) for each in path.directions]
        round_trip_s = min((path.delay_ns / 1e9 for path in paths.get(key, ())), default=0.0)
        way = {each.name: each.least_rate_bit_per_s for each in ways}
        asked = asked_bit_per_s(of.argv, of.result, end_s - begin_s)
        return Life(of.node, of.name, begin_s, end_s, way, of.name in behind, asked, round_trip_s, when.get(key))

    return [
        life(each, each.start_s, each.end_s)
        for each in processes
        if each.start_s is not None and each.end_s is not None and (each.exit == 0 or each.stopped)
        if "error" not in (each.result or {})
    ]


def _talked(plan: Plan, guests: Sequence[GuestFidelity]) -> dict[Key, float | None]:
    """When programs began to talk, of those of which the clocks of their guests know it."""
    told = [each for guest in guests if guest.contention for each in guest.contention.begins]
    # Who is told of twice was started again, in a guest whose kernel ended.
    times = Counter(each.process for each in told)
    known = [(plan.processes[each.process], each.at_s) for each in told if times[each.process] == 1]
    return {(process.node, process.name): at_s for process, at_s in known}
