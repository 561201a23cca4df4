"""What a run would make of a node: what other programs do not plan by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Route:
    """A static route: a prefix, or `default`; and its hops, each an address and the interface that leads to it."""

    to: str
    hops: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Configured:
    """The addresses (with prefix length) of a node's interfaces, its routes, and whether it forwards packets."""

    addresses: Mapping[str, Sequence[str]]
    routes: Sequence[Route]
    forwards: bool
    shares: bool
    """Whether a route divides flows among its hops in a way of its own."""
