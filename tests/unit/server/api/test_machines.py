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
from dilaton.server.settings import Settings, of_file
from tests.unit.server.serving import LAB, served

HOSTS = ("ws1", "alice@ws2")


def test_a_run_is_spread_over_hosts_that_the_server_has_or_over_machines_made_of_its_own(tmp_path: Path) -> None:
    assert [Settings(tmp_path).spread(number) for number in (1, 3)] == [(1, ()), (3, ())]
    of_hosts = Settings(tmp_path, machines=HOSTS)
    assert [of_hosts.spread(number) for number in (1, 2)] == [(1, ()), (1, HOSTS)]
    with pytest.raises(ValueError, match="3: this server has 2 machines"):
        of_hosts.spread(3)


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
        assert me.api("GET", "/runs") == []


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
