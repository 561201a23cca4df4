"""By how much later programs began to talk than their lab says. Pure.

**Problem.** Where programs begin at one instant, the longest stretch in which any waited bounds by how much later one
may have begun than another (`together.py`). In a stretch of 46 ms in which two flows start each has had its turns: both
began to talk 45 and 46 ms late, which is next to nothing for how they met. Of 44 runs that were right and called
`suspect` 32 were so for that bound, and eight for nothing else.

**The measure.** The guest's clock notes when a program that the lab starts first connects, sends to an address, or
accepts who connects, and for how long it may have waited for the CPU at each of its turns from then on: since it had
the CPU last, or since the stretch began (`crates/interrupts/src/talkers.rs`). What was late of the begin of a program
is from when the lab starts it until then. By how much that differs between programs is by how much they met otherwise
than the lab says, whether they waited or had much to do themselves before. What they waited for after that is judged
as it was, by the longest wait while one looks at others, but by that of those who talk alone.

**Who waits for others.** A program that starts `after` something does so when that has happened, which may itself have
been late. On a machine with time to spare it happens no later. So where all that it waited for was ready before the
lab's `start` it is late from then on, and elsewhere by something between that and what it is from then on.

**Where it is not known.** Not where a node at an end has a share of a CPU: its programs take their time as the lab
asks for, and by how much they are late beside that nobody knows. Of two flows that began 4 ms apart one was 8 % off, as
the server of the other, with half a CPU, answered 32 ms later. Nor where a program there starts others, runs threads or
executes another program, of which the clock does not know which of them waits; where the lab changes something
meanwhile; and where there are more programs than the clock watches. There the bound stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from dilaton.plan.model import Plan

Key = tuple[str, str]
"""A process, by its node and name."""


@dataclass(frozen=True)
class Begun:
    """When a program began to talk.

    Attributes:
        at_s: Virtual seconds since virtual 0.
        late_s: By how much later than it should have, virtual seconds, at least.
        late_s_max: The same at most.
    """

    at_s: float
    late_s: float
    late_s_max: float


def begun(
    plan: Plan,
    talked: Mapping[Key, float | None],
    started: Mapping[Key, float | None],
    ready: Mapping[str, float | None],
    ends: Mapping[Key, Set[str]],
) -> dict[Key, Begun]:
    """The programs of a plan of which it is known when they began to talk, and should have.

    Args:
        plan: What was run.
        talked: When programs began to talk, virtual seconds since virtual 0, None: not at all; of those alone of which
            that is known.
        started: When they were started.
        ready: When processes were seen to be ready, by name, of those of which that is known.
        ends: The nodes whose programs matter to one, its own among them.
    """
    if plan.course:
        return {}
    unknown = {node.name for node in plan.nodes if node.cpu is not None}
    unknown |= {process.node for process in plan.processes if (process.node, process.name) not in talked}
    found = {}
    for process in plan.processes:
        key = (process.node, process.name)
        at_s, start_s = talked.get(key), started.get(key)
        if at_s is None or start_s is None or process.restart is not None or ends[key] & unknown:
            continue
        due_s = process.start_ns / 1e9
        awaited = [ready.get(each.name) if each.moment == "milestone" else None for each in process.after]
        latest_s = max([due_s, *(start_s if each is None else each for each in awaited)])
        found[key] = Begun(at_s, at_s - latest_s, at_s - due_s)
    return found
