"""`benches/peers`: the same work for others, and the row of the table that says what it cost."""

import fcntl
import os
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

PEERS = Path(__file__).parents[3] / "benches" / "peers"
BUILT = Path("/built")
PIDS_MAX = 2**22
"""No process has this number."""


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


def test_a_row_names_the_ratio_of_each_kernel_to_each_peer(peers: dict[str, Any], tmp_path: Path) -> None:
    cost, costs = peers["Cost"], peers["Costs"](tmp_path / "costs.jsonl", "a commit")
    for peer, cpu_s, status in (("Dilaton", 3.0, 0), ("Shadow", 2.0, 0), ("ns-3", 9.0, 1), ("native", 0.5, 0)):
        costs.add("W0", peer, cost(cpu_s, 1.0, 1_000_000, status))

    row = costs.row("W0", peers["works"](BUILT)["W0"])

    assert row == (
        "| W0 a node that runs true(1) | 3.00 / 1.0 / 1 | 2.00 / 1.0 / 1 | failed | 0.50 / 1.0 / 1 | "
        "Shadow 1.5, native 6.0 |"
    )

    costs.add("W0", "Dilaton other", cost(1.0, 1.0, 1_000_000, 0))
    row = costs.row("W0", peers["works"](BUILT)["W0"], ("Dilaton", "Dilaton other"))

    assert row == (
        "| W0 a node that runs true(1) | 3.00 / 1.0 / 1 | 1.00 / 1.0 / 1 | 2.00 / 1.0 / 1 | failed | 0.50 / 1.0 / 1 | "
        "Shadow 1.5 and 0.5, native 6.0 and 2.0 |"
    )


def test_groups_of_who_was_killed_are_removed_and_of_others_not(peers: dict[str, Any], tmp_path: Path) -> None:
    meter = sys.modules["meter"]
    own, ended = (tmp_path / "cpuacct" / f"{meter.GROUP}{process}" for process in (os.getpid(), PIDS_MAX))
    for group in (own, ended):
        (group / "guest").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meter, "GROUPS", tmp_path)
        peers["forget_ended"]()
    assert own.exists() and not ended.exists()


def test_two_do_not_measure_at_once(
    peers: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(peers["main"].__globals__, "BUILT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["peers", "W0"])
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit):
            peers["main"]()
    assert f"{tmp_path}: another ./dev peers measures there" in capsys.readouterr().err
