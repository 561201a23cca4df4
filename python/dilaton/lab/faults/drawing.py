"""Draws what a lab leaves to its seed: who is meant by `one of db*`, and all faults of `random`.

A fault of several things becomes one fault of each, and `random` becomes those that were drawn, so that everything
after this knows single faults of single things. Each keeps the place in the list at which it was written. What cannot
be drawn stays as it is and says why (`Fault.mistake`), so that the check can tell that with all other mistakes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from dilaton.lab.errors import unknown
from dilaton.lab.faults.fault import Fault, Flap, Subject, kind_of_fault
from dilaton.lab.faults.load import Load
from dilaton.lab.faults.meeting import meeting, takes_away
from dilaton.lab.faults.partition import LEAST, SHAPES
from dilaton.lab.parts.links import Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.selectors import Selection, is_pattern, nodes_of, split_quantity
from dilaton.lab.text.part import Part

DRAWN_MAX = 1_000
"""Faults that one `random` may draw; more make a plan that nobody reads."""

TRIES = 50
"""How often another fault is drawn where one would meet another; then the instant has none."""


class Service(NamedTuple):
    """A process that faults may be about."""

    node: str
    name: str
    background: bool


class Scene(NamedTuple):
    """What faults can be about; links and nodes with those of the topology."""

    nodes: Mapping[str, Node]
    groups: Mapping[str, Node]
    links: list[Link]
    services: list[Service]
    switches: frozenset[str]
    seed: int
    stop_after_ns: int | None


class _Busy(NamedTuple):
    """A fault, and from when until when it lasts."""

    fault: Fault
    begin_ns: int
    end_ns: float


def drawn(written: Sequence[Fault], scene: Scene, others: Iterable[Fault] = ()) -> list[Fault]:
    """All faults, in the order in which they are written; what is drawn follows from the lab's seed and their names.

    Args:
        written: What is drawn.
        scene: What it can be about.
        others: Faults that there are beside, with which what is drawn at random does not meet.
    """
    spread = {fault.name: _spread_or_mistake(fault, scene) for fault in written if fault.random is None}
    of_known = itertools.chain(others, *spread.values())
    known = [_busy(fault) for fault in of_known if fault.at_ns is not None]
    found: list[Fault] = []
    for fault in written:
        if fault.random is None:
            found += spread[fault.name]
            continue
        try:
            found += _random(fault, scene, known)
        except ValueError as error:
            found.append(fault.mistaken(("random",), str(error)))
    return found


def _busy(fault: Fault) -> _Busy:
    begin_ns = fault.at_ns or 0
    return _Busy(fault, begin_ns, float("inf") if fault.lasts_ns is None else begin_ns + fault.lasts_ns)


def _spread_or_mistake(fault: Fault, scene: Scene) -> list[Fault]:
    try:
        return _spread(fault, scene)
    except ValueError as error:
        own = getattr(fault, fault.action)
        fields: dict[type, tuple[str, ...]] = {Flap: ("link",), Load: ("from",), Subject: (), str: ()}
        field = fields.get(type(own), ("node",))
        return [fault.mistaken((fault.action, *field), str(error))]


def _spread(fault: Fault, scene: Scene) -> list[Fault]:
    """One fault of each thing that this one means; itself, if it names one."""
    own = getattr(fault, fault.action)
    draw = random.Random(f"{scene.seed} {fault.name} select")
    made: list[dict[str, Any]]
    if isinstance(own, str) and fault.action == "link":
        made = [{"link": name} for name in _links(own, scene, draw)]
    elif isinstance(own, str):
        made = [{fault.action: subject["node"]} for subject in _subjects(own, None, scene, draw)]
    elif isinstance(own, Flap):
        made = [{"flap": own.model_copy(update={"link": name})} for name in _links(own.link, scene, draw)]
    elif isinstance(own, Part) and isinstance(node := getattr(own, "node", None), str):
        process = own.process if isinstance(own, Subject) else None
        subjects = _subjects(node, process, scene, draw)
        made = [{fault.action: own.model_copy(update=subject)} for subject in subjects]
    else:
        return [fault]
    if len(made) == 1:
        return [fault.model_copy(update=made[0])]
    return [fault.model_copy(update={**each, "name": f"{fault.name}-{number}"}) for number, each in enumerate(made, 1)]


def _links(text: str, scene: Scene, draw: random.Random) -> list[str]:
    """The links that are meant. What is no pattern is left to who looks links up, who knows how they are written."""
    quantity, names = split_quantity(text)
    if quantity is None and not is_pattern(names):
        return [text]
    wanted = names.replace(" ", "")
    found = [link.name for link in scene.links if any(fnmatchcase(name, wanted) for name in _spellings(link))]
    if not found:
        raise ValueError(f"{names}: meets no link; write a pattern such as db*--*, or a link, such as a--b")
    return found if quantity is None else quantity.drawn_from(found, draw)


def _spellings(link: Link) -> Iterator[str]:
    """How a link may be written, its ends in either order, with interfaces and without; a segment in one order."""
    ends = link.endpoints
    for order in (ends, ends[::-1]):
        yield "--".join(f"{end.node}:{end.interface}" for end in order)
        yield "--".join(end.node for end in order)


def _subjects(node: str, process: str | None, scene: Scene, draw: random.Random) -> list[dict[str, str]]:
    quantity, names = split_quantity(node)
    is_one = quantity is None and names not in scene.groups and not is_pattern(names)
    if is_one and not (process and is_pattern(process)):
        found = {"node": node} if process is None else {"node": node, "process": process}
        return [found]
    nodes = nodes_of(scene, names)
    if process is None:
        subjects = [{"node": name} for name in nodes]
    else:
        of_nodes = [service for service in scene.services if service.node in nodes]
        subjects = [{"node": one.node, "process": one.name} for one in of_nodes if fnmatchcase(one.name, process)]
        if not subjects:
            raise ValueError(unknown(f"process of {names}:", process, [one.name for one in of_nodes]))
    return subjects if quantity is None else quantity.drawn_from(subjects, draw)


def _random(fault: Fault, scene: Scene, known: Iterable[_Busy]) -> list[Fault]:
    """What `random` draws: a fault every so often, none of which meets another whose instants are known."""
    chance = fault.random
    assert chance is not None, "somebody asked for chance of a fault that has none"
    draw = random.Random(f"{scene.seed} {fault.name} random")
    since_ns = fault.at_ns or 0
    until_ns = _until_ns(fault, scene)
    if (until_ns - since_ns) / chance.every.mean_ns > DRAWN_MAX:
        raise ValueError(f"draws more than {DRAWN_MAX} faults; have one less often, with every:")
    selection = Selection(scene, f"{scene.seed} {fault.name}", scene.switches)
    on = [name for name in selection.select(chance.on) if name not in scene.switches]
    if not on:
        raise ValueError(f"{', '.join(chance.on)}: only switches, which run no programs")
    # Those that wait for something know nothing of instants.
    busy = list(known) if fault.after is None else []
    own: list[_Busy] = []
    ends_ns: list[int] = []
    found: list[Fault] = []
    now_ns = since_ns
    while (now_ns := now_ns + chance.every.drawn(draw)) < until_ns:
        # Drawn in any case, so that one that is left out does not change when the next one comes.
        lasts_ns = chance.lasts.drawn(draw)
        if now_ns + lasts_ns > until_ns or sum(end_ns > now_ns for end_ns in ends_ns) >= chance.at_most:
            continue
        meets = [one.fault for one in (*busy, *own) if one.begin_ns < now_ns + lasts_ns and now_ns < one.end_ns]
        name = f"{fault.name}-{len(ends_ns) + 1}"
        for _ in range(TRIES):
            what = _what(draw.choice(chance.of), on, scene, draw)
            made = _spread(_made(fault, name, what, now_ns, lasts_ns), scene._replace(seed=draw.getrandbits(64)))
            if not any(meeting(scene.links, other, one) or takes_away(other, one) for other in meets for one in made):
                found += made
                ends_ns.append(now_ns + lasts_ns)
                own += [_Busy(one, now_ns, now_ns + lasts_ns) for one in made]
                break
    return found


def _until_ns(fault: Fault, scene: Scene) -> int:
    since_ns = fault.at_ns or 0
    if fault.for_ns is not None:
        return since_ns + fault.for_ns
    if scene.stop_after_ns is None or fault.after is not None:
        raise ValueError("draws faults without end; write for: beside it, how long, or at: and the lab's stop_after:")
    return scene.stop_after_ns


def _made(fault: Fault, name: str, what: Mapping[str, Any], begin_ns: int, lasts_ns: int) -> Fault:
    """A fault as it was drawn, which begins after what `fault` waits for if that does."""
    when = {"at": begin_ns} if fault.after is None else {"after": fault.after, "wait": fault.wait_ns + begin_ns}
    return kind_of_fault(what, lasts_ns, {**when, "name": name}).at_place(fault.place)


def _what(kind: str | Mapping[str, Any], on: list[str], scene: Scene, draw: random.Random) -> Mapping[str, Any]:
    """A fault without its time; the fields of one that is drawn as a whole are already."""
    match kind:
        case Mapping():
            return kind
        case "kill":
            services = [one for one in scene.services if one.node in on and one.background]
            if not services:
                raise ValueError(f"kill: no process in the background on {', '.join(on)}, to be killed")
            service = draw.choice(services)
            return {"kill": f"{service.node}/{service.name}"}
        case "link":
            links = [link.name for link in scene.links if any(end.node in on for end in link.endpoints)]
            if not links:
                raise ValueError(f"link: no link ends at {', '.join(on)}")
            return {"link": draw.choice(links), "down": True}
        case "partition":
            shapes = [shape for shape in SHAPES if LEAST[shape] <= len(on)]
            shape = draw.choice(shapes)
            return {"partition": {shape: [draw.choice(on)] if shape == "isolate" else on}}
    return {kind: draw.choice(on)}
