"""Losses with a seed: their frequencies are those of netem's models, and which packets they are follows from the seed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from tests.conftest import RunLab

COUNT = 2000

LAB = f"""
name: seeded
time: {{drive: work, tdf: 1}}
nodes: {{a: {{}}, b: {{}}}}
links:
  - endpoints: ["a:eth0", "b:eth0"]
    a_to_b: {{loss: {{random: 20%, seed: 7}}}}
    b_to_a: {{loss: {{gemodel: {{p: 5%, r: 30%, 1-h: 80%, 1-k: 1%}}, seed: 7}}}}
run: [{{on: a, name: ping, exec: ping -i 0.002 -W 1 -c {COUNT} b}}]
"""

MULTIPLIER, INCREMENT = 6_364_136_223_846_793_005, 1_442_695_040_888_963_407


def draws(seed: int, direction: str) -> Iterator[float]:
    """The numbers, 0..1, that decide on the packets of a direction."""
    state = int.from_bytes(hashlib.sha256(f"{seed} {direction}".encode()).digest()[:8], "big")
    while True:
        state = (state * MULTIPLIER + INCREMENT) % 2**64
        yield (state >> 32) / 2**32


def expected() -> set[int]:
    """The pings that are answered, by their number from 1."""
    there, back = draws(7, "a:eth0--b:eth0 a_to_b"), draws(7, "a:eth0--b:eth0 b_to_a")
    answered, is_bad = set(), False
    for number in range(1, COUNT + 1):
        if next(there) < 0.2:
            continue
        if is_bad:
            is_bad = next(back) < 0.7
            lost = next(back) < 0.8
        else:
            is_bad = next(back) >= 0.95
            lost = next(back) < 0.01
        if not lost:
            answered.add(number)
    return answered


def test_which_packets_are_lost_follows_from_the_seed_alone(run_lab: RunLab) -> None:
    outcome = run_lab(LAB)
    assert outcome.status == 0
    answered = {int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", outcome.stdout("a", "ping"))}
    assert answered == expected()
