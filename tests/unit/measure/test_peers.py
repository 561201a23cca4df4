"""`benches/peers`: the same work for others, and the row of the table that says what it cost."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

PEERS = Path(__file__).parents[3] / "benches" / "peers"
BUILT = Path("/built")


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the command's module has."""
    for module in ("meter", "shadow", "works"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.syspath_prepend(PEERS)
    return runpy.run_path(str(PEERS / "__main__.py"), run_name="peers")


def test_shadow_does_all_works_but_that_of_routers_with_as_many_programs(peers: dict[str, Any]) -> None:
    works, configurations = peers["works"](BUILT), peers["configurations"](BUILT)

    assert set(works) - set(configurations) == {"W5"}
    for name, configuration in configurations.items():
        hosts = configuration["hosts"].values()
        servers = sum(process.get("background", False) for process in works[name].lab["run"])
        programs = len(works[name].lab["run"]) - (servers - 1 if name in {"W3", "W7"} else 0)  # One begins the others.
        assert sum(len(host["processes"]) for host in hosts) == programs, name
        in_graph = {int(node) for node in re.findall(r"(?m)^id (\d+)$", configuration["network"]["graph"]["inline"])}
        assert {host["network_node_id"] for host in hosts} == in_graph, name


def test_a_row_names_the_ratio_to_each_peer(peers: dict[str, Any], tmp_path: Path) -> None:
    cost, costs = peers["Cost"], peers["Costs"](tmp_path / "costs.jsonl", "a commit")
    for peer, cpu_s, status in (("Dilaton", 3.0, 0), ("Shadow", 2.0, 0), ("ns-3", 9.0, 1), ("native", 0.5, 0)):
        costs.add("W0", peer, cost(cpu_s, 1.0, 1_000_000, status))

    row = costs.row("W0", peers["works"](BUILT)["W0"])

    assert row == (
        "| W0 a node that runs true(1) | 3.00 / 1.0 / 1 | 2.00 / 1.0 / 1 | failed | 0.50 / 1.0 / 1 | "
        "Shadow 1.5, native 6.0 |"
    )
