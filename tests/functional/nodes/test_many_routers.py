"""Routing daemons over several guests, which flood what they know over the wires between these."""

from __future__ import annotations

from tests.conftest import RunLab

ROWS, COLUMNS = 4, 5

GRID = f"""
name: grid
time: {{drive: work, tdf: 100}}
guests: 2
topology: {{generate: grid, rows: {ROWS}, columns: {COLUMNS}, hosts: 0, rate: 100Mbit, delay: 5ms}}
groups: {{fabric: {{kind: router}}}}
routing: {{policy: ospf, daemon: bird}}
run:
  - {{on: n0, name: across, exec: ping -c 3 n{ROWS * COLUMNS - 1}, after: converged}}
expect: [across.loss == 0%, converged.end < 60s]
"""

ROUND_TRIP_MS = 2 * 5.0 * (ROWS - 1 + COLUMNS - 1)


def test_routers_of_two_guests_converge_in_a_run_that_is_valid(run_lab: RunLab) -> None:
    outcome = run_lab(GRID)
    assert outcome.status == 0, outcome.terminal
    assert outcome.record["verdict"]["level"] == "valid", outcome.record["verdict"]
    assert outcome.record["fidelity"]["frames"]["received"] > 0, "the grid is over both guests"
    # The two shapers of 100 Mbit/s on each of the seven links add some microseconds to the way.
    assert ROUND_TRIP_MS <= outcome.process("across")["result"]["rtt"]["min"] * 1e3 < ROUND_TRIP_MS + 1
