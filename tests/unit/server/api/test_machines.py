"""Runs over several machines, as a server is asked for them, and the machines that it has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dilaton.host.errors import GuestError
from dilaton.lab.errors import LabError
from dilaton.run import machines
from dilaton.server.access.callers import make_person
from dilaton.server.runs import keeper
from dilaton.server.settings import Settings, of_file
from dilaton.service.launch import RunProcess
from dilaton.service.launch import launch as launch_it
from dilaton.service.request import RunRequest
from tests.unit.server.serving import ENDLESS, LAB, served, use_stub

HOSTS = ("ws1", "alice@ws2")


def divisible(lab: str) -> str:
    """A lab of whose two nodes each may be in a guest of its own."""
    return lab.replace("[a -- b]", "[{endpoints: [a, b], delay: 5ms}]")


def test_a_run_is_spread_over_hosts_that_the_server_has_or_over_machines_made_of_its_own(tmp_path: Path) -> None:
    assert [Settings(tmp_path).spread(number) for number in (1, 3)] == [(1, ()), (3, ())]
    of_hosts = Settings(tmp_path, machines=HOSTS)
    assert [of_hosts.spread(number) for number in (1, 2)] == [(1, ()), (1, HOSTS)]
    with pytest.raises(ValueError, match="3: this server has 2 machines"):
        of_hosts.spread(3)
    of_three = Settings(tmp_path, machines=("ws1", "ws2", "ws3"))
    assert of_three.spread(2, ["ws1", "ws3", "ws1"]) == (1, ("ws2", "ws3")), "those with the fewest runs"


def test_the_file_of_a_server_names_hosts_and_no_options_of_ssh(tmp_path: Path) -> None:
    (tmp_path / "server.yaml").write_text("machines: [ws1, alice@ws2]\n")
    assert of_file(tmp_path / "server.yaml")["machines"] == HOSTS
    (tmp_path / "server.yaml").write_text("machines: [-oProxyCommand=x]\n")
    with pytest.raises(LabError, match="machines"):
        of_file(tmp_path / "server.yaml")


def test_what_cannot_be_spread_so_is_refused_before_it_is_a_run(tmp_path: Path) -> None:
    with served(tmp_path, machines=HOSTS) as server:
        me = server.client()
        lab = me.keep(LAB)
        refused = me.api("POST", f"/labs/{lab}/runs", {"machines": 2}, status=422)
        assert refused["detail"].startswith("2: the lab has 1 guest") and refused["field"] == "machines"
        refused = me.api("POST", f"/labs/{lab}/runs", {"machines": 3}, status=422)
        assert (refused["detail"], refused["field"]) == ("3: this server has 2 machines", "machines")
        sweep = {"machines": 3, "fields": [{"path": "guests", "values": ["2", "1"]}]}
        refused = me.api("POST", f"/labs/{lab}/sweeps", sweep, status=422)
        assert (refused["detail"], refused["field"]) == ("3: this server has 2 machines", "machines")
        lab = me.keep(divisible(LAB))
        refused = me.api("POST", f"/labs/{lab}/sweeps", sweep | {"machines": 2}, status=422)
        assert refused["detail"].startswith("with guests=1: 2: the lab has 1 guest")
        assert (me.api("GET", "/runs"), me.api("GET", "/sweeps")) == ([], [])


def test_runs_of_a_sweep_that_go_on_at_once_have_hosts_of_their_own_as_far_as_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[tuple[int, tuple[str, ...]]] = []

    def launch(request: RunRequest, **how: Any) -> RunProcess:
        launched.append((request.machines, request.onto))
        return launch_it(request, **how)

    monkeypatch.setattr(keeper, "launch", launch)
    use_stub(monkeypatch)
    hosts = ("ws1", "ws2", "ws3", "ws4")
    with served(tmp_path, at_once=2, machines=hosts) as server:
        me, lab = server.client(), f"guests: 2\n{divisible(ENDLESS)}"
        made = me.api("POST", f"/labs/{me.keep(lab)}/sweeps", {"machines": 2, "repeat": 2})
        runs = [run["run"] for run in made["runs"]]
        for run in runs:
            me.wait(run, "running")
            assert me.api("GET", f"/runs/{run}/lab")["machines"] == 2
        assert sorted(launched) == [(1, ("ws1", "ws2")), (1, ("ws3", "ws4"))]
        me.api("POST", f"/sweeps/{made['sweep']}/stop")
        for run in runs:
            me.wait(run, "aborted", "finished", "cancelled")


@pytest.mark.parametrize(
    ("hosts", "state", "attempts"),
    [(("lost", "ws1", "ws2"), "finished", [("lost", "ws1"), ("ws1", "ws2")]), (("ws1", "lost"), "failed", None)],
)
def test_a_run_of_a_sweep_that_loses_a_machine_runs_again_elsewhere_up_to_three_times(
    hosts: tuple[str, ...],
    state: str,
    attempts: list[tuple[str, ...]] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launched: list[tuple[str, ...]] = []

    def launch(request: RunRequest, **how: Any) -> RunProcess:
        launched.append(request.onto)
        return launch_it(request, **how)

    monkeypatch.setattr(keeper, "launch", launch)
    use_stub(monkeypatch)
    with served(tmp_path, machines=hosts) as server:
        me, lab = server.client(), f"guests: 2\n{divisible(LAB)}"
        made = me.api("POST", f"/labs/{me.keep(lab)}/sweeps", {"machines": 2})
        me.wait(made["runs"][0]["run"], state)
        assert launched == (attempts or [hosts] * keeper.ATTEMPTS_MAX)
        # A run of its own is its person's to begin once more.
        launched.clear()
        run = me.api("POST", f"/labs/{made['lab']}/runs", {"machines": 2})["run"]
        me.wait(run, state)
        assert len(launched) == 1


def test_machines_are_asked_for_what_they_have_and_one_that_does_not_answer_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = SimpleNamespace(cores=8, free_cores=5, ghz=2750, memory_bytes=1 << 34, runs=2)

    def look(names: Sequence[str]) -> list[tuple[Any, list[str]]]:
        assert tuple(names) == HOSTS
        return [(has, []), (GuestError("ssh: no route to host"), ["ssh: no route to host"])]

    monkeypatch.setattr(machines, "look", look)
    with served(tmp_path, machines=HOSTS) as server:
        with server.state.store.writing() as session:
            make_person(session, "ann")
        one, other = server.client().api("GET", "/machines")
        assert (one["name"], one["cores"], one["free_cores"], one["core_ghz"], one["runs"]) == ("ws1", 8, 5, 2.75, 2)
        assert (other["name"], other["cores"], other["why"]) == ("alice@ws2", None, ["ssh: no route to host"])
        assert server.client("ann").api("GET", "/machines", status=403)["permission"] == "Server.Read"


def test_a_server_of_one_machine_asks_no_other(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert server.client().api("GET", "/machines") == []
