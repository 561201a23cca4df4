"""Nodes that share a guest compute as fast as their CPUs are, whatever the TDF and whoever else is in the guest."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Outcome, RunLab

COUNT = json.dumps("python3 -I -S -c 'for _ in range(1000000): pass'")


def life_s(outcome: Outcome, process: str) -> float:
    """For how long a process ran, virtual seconds."""
    return outcome.instant_s("exited", process) - outcome.instant_s("started", process)


@pytest.mark.parametrize(("tdf", "within"), [(1, 0.06), (50, 0.03)])
def test_ten_nodes_that_compute_are_as_fast_as_their_cpus(run_lab: RunLab, tdf: int, within: float) -> None:
    """What their programs cost the host, over the speed of their CPUs, is for how long they were there. At TDF 1 all starts,
    which are nobody's work, are a noticeable part of the guest's CPU."""
    names = [f"n{number}" for number in range(10)]
    nodes = "".join(f"  {name}: {{cpu: 0.05}}\n" for name in names)
    processes = "".join(f"  - {{on: {name}, name: {name}, exec: {COUNT}}}\n" for name in names)
    outcome = run_lab(f"name: ten\ntime: {{tdf: {tdf}}}\nnodes:\n{nodes}run:\n{processes}")
    assert outcome.status == 0
    shares = outcome.record["fidelity"]["shares"]
    assert shares["busy_s"] == pytest.approx(shares["charged_s"] / 0.05, rel=1e-6)
    assert sum(life_s(outcome, name) for name in names) == pytest.approx(shares["busy_s"], rel=within)
