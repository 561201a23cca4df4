"""What the reproductions of DieCast share: machines of their own, or ten on one, with scaling and without."""

from __future__ import annotations

from typing import Any

ALONE, SCALED, NO_SCALING = "baseline", "DieCast", "no DieCast"
"""Each machine by itself; ten on one, each with a tenth of it in slower time; ten on one, and nothing else."""
STYLES = {ALONE: "-", SCALED: "--", NO_SCALING: ":"}
"""How lines of figures are drawn."""
TOGETHER = 10
"""Machines on one, but in the baseline."""
SPARE = 1.25
"""TDF of a guest over the sum of its machines' CPUs, as `dilaton scale` has it."""
NETWORK_TDF = "50"
"""Of the guests that forward packets, which are no part of what is compared."""
REDIS = "exec redis-server --protected-mode no --save '' --appendonly yes --appendfsync always --dir /srv"
"""A database that has written to its disk what it has acknowledged."""
DATABASE_DISK = {"model": "hdd-7200", "size": "2GB"}


def place(machines: list[str], placed: str, memory_mb: int = 64) -> tuple[dict[str, Any], dict[str, Any]]:
    """Guests and nodes of a lab: each machine in a guest of its own, or among ten that are as different as can be.

    For that `machines` are in the order of their kinds. `memory_mb` is what each of them needs besides a kernel.
    """
    guests: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    together = 1 if placed == ALONE else min(TOGETHER, len(machines))
    count = -(-len(machines) // together)
    for number, machine in enumerate(machines):
        guest = f"machine{number % count}"
        nodes[machine] = {"guest": guest} | ({} if placed == NO_SCALING else {"cpu": "1"})
        guests[guest] = {"memory": f"{256 + memory_mb * together}MiB"}
        if together > 1:
            guests[guest]["tdf"] = "1" if placed == NO_SCALING else f"{SPARE * together:g}"
    return guests, nodes


def redis(node: str, name: str = "redis", **when: Any) -> dict[str, Any]:
    """The program that is a database on that node."""
    ready = {"ready": {"tcp": "6379"}, "background": "true"}
    return {"on": node, "name": f"{name}-{node}", "exec": ["sh", "-c", REDIS]} | ready | when
