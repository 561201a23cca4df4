"""Random networks: nodes of several kinds, and links from 1 kbit/s to 10 Tbit/s that lose, delay and queue anyhow."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Fields = dict[str, Any]

LONGEST_NAME = 63
"""Characters of a node's name at most."""


@dataclass
class Network:
    """The nodes and links of a lab, as it has them."""

    nodes: dict[str, Fields]
    links: list[Fields]
    routing: Any
    is_quick: bool
    """Whether a link carries so much that what sends for a time has no end on this machine."""

    @property
    def hosts(self) -> list[str]:
        """The nodes in which programs run."""
        return [name for name, node in self.nodes.items() if node.get("kind") != "switch"]

    @property
    def pairs(self) -> list[str]:
        """The links between two nodes, as faults and changes name them."""
        return ["--".join(link["endpoints"]) for link in self.links if len(link["endpoints"]) == 2]


def names(draw: random.Random) -> list[str]:
    """One to six names, in one of eight labs as long or as odd as names may be."""
    count = draw.choice([1, 2, 2, 2, 3, 3, 4, 5, 6])
    odd = draw.random()
    if odd < 0.06:
        return [f"{number}".rjust(LONGEST_NAME, "n") for number in range(count)]
    if odd < 0.12:
        return [f"{number}-{'x' * number}a" for number in range(count)]
    return list("abcdef"[:count])


def delay(draw: random.Random, is_between: bool) -> Any:
    """The delay of a link; between guests it is never less than 2 ns."""
    mean = f"{round(20 * 1000 ** draw.random())}us"
    kinds: list[Any] = [mean] * 6 + ["2ns", "100us", "333333ns"]
    if not is_between:
        jitter = {"jitter": "2ms", "correlation": "25%", "distribution": draw.choice(["uniform", "normal", "pareto"])}
        kinds += ["0s", "1ns", {"mean": "5ms"} | jitter]
    return draw.choice(kinds)


def rate(draw: random.Random) -> str | None:
    """The rate of a link, mostly of some Mbit/s."""
    usual = f"{round(3 * 10 ** draw.random(), 1)}Mbit"
    return draw.choice([usual] * 6 + [None, "1Gbit", "100Gbit", "1234567bit", "64kbit", "1kbit", "2.5Mibit", "10Tbit"])


def loss(draw: random.Random) -> Any:
    """Which packets a link loses."""
    return draw.choice(
        [
            "2%",
            "100%",
            {"random": "5%", "seed": 7},
            {"random": "3%", "correlation": "25%"},
            {"gemodel": {"p": "1%", "r": "10%", "1-h": "90%"}},
            {"every": 20},
            {"packets": [3, 17]},
        ]
    )


def queue(draw: random.Random) -> Fields:
    """What waits in front of a link, and how much of it."""
    disciplines: list[Fields] = [
        {},
        {},
        {"discipline": "codel", "target": "2ms"},
        {"discipline": "fq_codel", "ecn": True},
        {"discipline": "pie"},
        {"discipline": "cake"},
        {"discipline": "sfq", "limit": 100},
        {"discipline": "fq"},
        {"discipline": "tbf", "burst": "32KB"},
        {"discipline": "htb"},
        {"discipline": "red", "limit": "200KB"},
    ]
    limits = [1, 10, 100, 1000, "50ms", "64KB"]
    return {"limit": draw.choice(limits), "discipline": "fifo"} | draw.choice(disciplines)


def link(draw: random.Random, ends: list[str], is_between: bool) -> Fields:
    """A link between these nodes; `is_between`: it may join guests."""
    made: Fields = {"endpoints": ends, "delay": delay(draw, is_between)}
    if found := rate(draw):
        made["rate"] = found
        if draw.random() < 0.6:
            made["queue"] = queue(draw)
    if draw.random() < 0.25:
        made["loss"] = loss(draw)
    for field in ("duplicate", "corrupt"):
        if draw.random() < 0.08:
            made[field] = draw.choice(["1%", "20%"])
    if draw.random() < 0.08 and not is_between:
        made["reorder"] = {"probability": "10%", "gap": draw.choice([1, 5])}
    if draw.random() < 0.08 and len(ends) == 2:
        made["b_to_a"] = draw.choice([{"loss": "5%"}, {"delay": "3ms"}])
    if draw.random() < 0.06 and not is_between:
        made.pop("rate", None)
        made.pop("queue", None)
        made["trace"] = {"schedule": [["0s", "10Mbit"], ["1s", "2Mbit"], ["1500ms", "8Mbit"]]}
    if draw.random() < 0.1:
        made["mtu"] = draw.choice([576, 1280, 9000, 65535])
    if draw.random() < 0.06:
        made["offload"] = True
    return made


def is_quick(made: Fields) -> bool:
    """Whether a link carries more than 30 Mbit/s or so."""
    return "trace" not in made and not str(made.get("rate", "")).endswith(("Mbit", "Mibit", "kbit", "567bit"))


def network(draw: random.Random, is_between: bool) -> Network:
    """A line, a star, any tree, a ring or a segment, with routers, switches or an address translation here and there.

    Args:
        draw: What it is drawn from.
        is_between: Whether links may join guests.
    """
    called = names(draw)
    nodes: dict[str, Fields] = {name: {} for name in called}
    if len(called) > 2 and draw.random() < 0.2:
        links = [link(draw, called, is_between)]
        return Network(nodes, links, None, any(map(is_quick, links)))
    shape = draw.choice(["line", "star", "tree"])
    parents: dict[str, Callable[[int], int]] = {"line": lambda n: n - 1, "star": lambda _: 0, "tree": draw.randrange}
    pairs = [(called[parents[shape](number)], called[number]) for number in range(1, len(called))]
    special = draw.random()
    if len(called) > 2 and special < 0.15:
        pairs.append((called[0], called[-1]))
        if (called[0], called[-1]) in pairs[:-1]:
            pairs.pop()
    elif len(called) > 2 and special < 0.3 and shape == "star":
        nodes[called[0]]["kind"] = "switch"
    elif len(called) > 2 and special < 0.3:
        inner = next(name for name in called if sum(name in pair for pair in pairs) > 1)
        nodes[inner] |= {"kind": "nat", "outside": "eth0"}
    links = [link(draw, list(pair), is_between) for pair in pairs]
    routing = draw.choice([None] * 8 + ["ecmp", "ospf"]) if special >= 0.3 or len(pairs) == len(called) else None
    if routing == "ospf":
        for name in called:
            if sum(name in pair for pair in pairs) > 1:
                nodes[name]["kind"] = "router"
        routing = routing if any(node.get("kind") == "router" for node in nodes.values()) else None
    return Network(nodes, links, routing, any(map(is_quick, links)))
