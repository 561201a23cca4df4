"""Where drawings have the nodes of a lab: those of `dilaton graph` and of reports at the same places.

A topology that knows its shape says where its nodes are. Nodes that it does not place stand beside their neighbours. A
lab that places none is laid out so that distances on paper are as those in the graph: by minimising stress (Gansner,
Koren and North, 2004), from where classical scaling (Torgerson, 1952) puts the nodes, so that it gives the same drawing
each time.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dilaton.lab.model import Lab
from dilaton.lab.segments import without_lans
from dilaton.plan.model import Plan

Position = tuple[float, float]
Positions = npt.NDArray[np.float64]

STEPS = 60
NODES_PLACED_MAX = 400
"""More nodes stay on a circle: placing takes their number squared."""
GOLDEN = math.pi * (3 - math.sqrt(5))
"""Turns by this angle never come back to the same direction."""
STRAIGHT = 0.05
"""Nodes that are so near to a line, as a share of its length, are on it."""
BESIDE = 0.6
"""How far a node that its topology does not place is from its neighbours, which are about 1 apart."""


def positions(lab: Lab) -> dict[str, Position]:
    """The place of each node, and of each segment, x to the right and y up; two neighbours are about 1 apart."""
    flat = without_lans(lab)
    pairs = [(link.endpoints[0].node, link.endpoints[1].node) for link in flat.links]
    return _placed(list(flat.nodes), pairs, lab.topology.positions if lab.topology else {})


def positions_of(plan: Plan) -> dict[str, Position]:
    """The same, of a lab's plan."""
    pairs = [(link.ends[0].node, link.ends[1].node) for link in plan.links]
    known = {node.name: node.position for node in plan.nodes if node.position is not None}
    return _placed([node.name for node in plan.nodes], pairs, known)


def _placed(
    names: Sequence[str], pairs: Sequence[tuple[str, str]], given: Mapping[str, Position]
) -> dict[str, Position]:
    known = {name: given[name] for name in names if name in given}
    if not known:
        number = {name: index for index, name in enumerate(names)}
        where = place(len(names), [(number[a], number[b]) for a, b in pairs])
        return {name: (float(x), float(y)) for name, (x, y) in zip(names, where, strict=True)}
    step = _step(known, pairs)
    placed = {name: (x / step, y / step) for name, (x, y) in known.items()}
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    for a, b in pairs:
        neighbours[a].append(b)
        neighbours[b].append(a)
    middle = np.mean(list(placed.values()), axis=0)
    beside = Counter[Position]()
    for name in (name for name in names if name not in placed):
        near = [placed[other] for other in neighbours[name] if other in placed] or list(placed.values())[:1]
        x, y = (sum(place[axis] for place in near) / len(near) for axis in (0, 1))
        # The first one away from the middle, where there is most room.
        angle = math.atan2(y - middle[1], x - middle[0]) + GOLDEN * beside[x, y]
        beside[x, y] += 1
        placed[name] = (x + BESIDE * math.cos(angle), y + BESIDE * math.sin(angle))
    return {name: placed[name] for name in names}


def _step(known: Mapping[str, Position], pairs: Sequence[tuple[str, str]]) -> float:
    """How far neighbours are apart, in the unit of the given places."""
    lengths = [math.dist(known[a], known[b]) for a, b in pairs if a in known and b in known]
    return float(np.median([length for length in lengths if length > 0] or [1.0]))


def place(count: int, ends: list[tuple[int, int]]) -> Positions:
    """Positions of nodes, a row each, the graph's longer side along the paper's.

    Args:
        count: Of nodes.
        ends: Of links, as numbers of nodes.
    """
    turns = np.arange(count)
    angle = 2 * np.pi * turns / max(1, count)
    positions = np.column_stack([np.cos(angle), np.sin(angle)]) * count / 4
    if 1 < count <= NODES_PLACED_MAX:
        distance = _distances(count, ends)
        # Nodes with the same neighbours may get the same place, from which nothing would drive them apart.
        positions = _scaled(distance) + 0.01 * np.column_stack([np.cos(GOLDEN * turns), np.sin(GOLDEN * turns)])
        weight = 1 / np.maximum(distance, 1) ** 2
        np.fill_diagonal(weight, 0)
        for _ in range(STEPS):
            apart = positions[:, None] - positions[None]
            length = np.maximum(np.linalg.norm(apart, axis=2), 1e-9)
            pull = positions[None] + apart * (distance / length)[..., None]
            positions = (weight[..., None] * pull).sum(axis=1) / weight.sum(axis=1)[:, None]
    positions = positions - positions.mean(axis=0)
    _, _, axes = np.linalg.svd(positions, full_matrices=False)
    turned: Positions = positions @ axes.T if count > 1 else positions
    if np.ptp(turned[:, 1]) < STRAIGHT * np.ptp(turned[:, 0]):
        turned[:, 1] = 0
    return turned


def _scaled(distance: Positions) -> Positions:
    """Positions in the plane whose distances are nearest to the given ones in their squares' inner products."""
    centred = distance**2
    centred = -(centred - centred.mean(axis=0) - centred.mean(axis=1)[:, None] + centred.mean()) / 2
    values, vectors = np.linalg.eigh(centred)
    flat: Positions = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-12))
    return flat


def _distances(count: int, ends: list[tuple[int, int]]) -> Positions:
    """Hops between all nodes; those that are not connected are a little further apart than any."""
    near: list[list[int]] = [[] for _ in range(count)]
    for a, b in ends:
        near[a].append(b)
        near[b].append(a)
    distance = np.full((count, count), np.inf)
    for source in range(count):
        distance[source, source] = 0
        waiting = deque([source])
        while waiting:
            here = waiting.popleft()
            for there in near[here]:
                if np.isinf(distance[source, there]):
                    distance[source, there] = distance[source, here] + 1
                    waiting.append(there)
    reached = distance[np.isfinite(distance)].max()
    return np.where(np.isinf(distance), reached + 1, distance)
