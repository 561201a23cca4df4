"""Sweeps of a server: all of their runs or none, in the queue as any other, seen and ended together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.server.serving import ENDLESS, LAB, Served, served, use_stub

FIELDS = [{"path": "links.0.delay", "values": ["1ms", "2ms"]}, {"path": "links.0.rate", "values": ["1Mbit", "2Mbit"]}]
WIDE = LAB.replace("[a -- b]", "[{endpoints: [a, b], delay: 5ms, rate: 9Mbit}]")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server"), at_once=2) as found:
        use_stub(monkeypatch)
        yield found


def settings(server: Served, run: str) -> list[str]:
    found: list[str] = server.client().api("GET", f"/runs/{run}/lab")["overrides"]["settings"]
    return found


def test_a_sweep_runs_every_combination_with_seeds_of_their_own_and_says_how_far_it_is(server: Served) -> None:
    owner = server.client()
    lab = owner.keep("seed: 7\n" + WIDE)
    asked = {"fields": FIELDS, "repeat": 2, "key": "one"}
    made = owner.api("POST", f"/labs/{lab}/sweeps", asked)
    assert [run["point"] for run in made["runs"]] == list(range(8))
    assert sum(made["states"].values()) == 8
    assert [settings(server, run["run"]) for run in made["runs"]][:3] == [
        ["seed=7", "links.0.delay=1ms", "links.0.rate=1Mbit"],
        ["seed=8", "links.0.delay=1ms", "links.0.rate=1Mbit"],
        ["seed=7", "links.0.delay=1ms", "links.0.rate=2Mbit"],
    ]
    again = owner.api("POST", f"/labs/{lab}/sweeps", asked)
    assert again["sweep"] == made["sweep"] and len(again["runs"]) == 8, "a lost answer makes no second sweep"
    for run in made["runs"]:
        owner.wait(run["run"], "finished")
    shown = owner.api("GET", f"/sweeps/{made['sweep']}")
    assert shown["states"] == {"finished": 8}
    assert [run["run"] for run in shown["runs"]] == [run["run"] for run in made["runs"]]
    [listed] = [one for one in owner.api("GET", "/sweeps") if one["sweep"] == made["sweep"]]
    assert (listed["states"], listed["fields"], listed["name"]) == ({"finished": 8}, FIELDS, "tiny")
    assert len(owner.api("GET", f"/runs?sweep={made['sweep']}")) == 8
    plan = owner.api("GET", f"/runs/{made['runs'][0]['run']}/drawing")
    assert plan["links"][0]["ends"][0]["delay_ns"] == 1_000_000, "each is drawn as it is"


@pytest.mark.parametrize(
    ("fields", "repeat", "told"),
    [
        ([{"path": "links.0.delay", "values": ["1ms", "fast"]}], 1, "with links.0.delay=fast"),
        ([{"path": "links.9.delay", "values": ["1ms"]}], 1, "links.9.delay"),
        ([{"path": "links.0.delay", "values": ["1ms", "1ms"]}], 1, "once"),
        ([{"path": "links.0.delay", "values": ["1ms"]}] * 2, 1, "once"),
        ([{"path": "links.0.delay", "values": [f"{n}ms" for n in range(60)]}], 5, "at most"),
        ([{"path": "links.0.delay", "values": []}], 1, "values"),
    ],
)
def test_a_sweep_with_a_mistake_in_any_run_makes_none(
    server: Served, fields: list[Any], repeat: int, told: str
) -> None:
    owner = server.client()
    before = len(owner.api("GET", "/runs")), len(owner.api("GET", "/sweeps"))
    said = owner.api("POST", f"/labs/{owner.keep(WIDE)}/sweeps", {"fields": fields, "repeat": repeat}, 422)
    assert told in said["detail"]
    assert (len(owner.api("GET", "/runs")), len(owner.api("GET", "/sweeps"))) == before


def test_a_sweep_is_stopped_with_all_that_wait_and_removed_with_all_that_it_left(server: Served) -> None:
    owner = server.client()
    made = owner.api("POST", f"/labs/{owner.keep(ENDLESS)}/sweeps", {"repeat": 5})
    first, second = (run["run"] for run in made["runs"][:2])
    for run in (first, second):
        owner.wait(run, "running")
    owner.api("DELETE", f"/sweeps/{made['sweep']}", status=409)
    owner.api("POST", f"/sweeps/{made['sweep']}/stop")
    for run in made["runs"]:
        owner.wait(run["run"], "aborted", "finished", "cancelled")
    states = owner.api("GET", f"/sweeps/{made['sweep']}")["states"]
    assert states["cancelled"] == 3 and sum(states.values()) == 5, states
    assert server.state.keeper.directory(first).is_dir()
    owner.api("DELETE", f"/sweeps/{made['sweep']}")
    owner.api("GET", f"/sweeps/{made['sweep']}", status=404)
    owner.api("GET", f"/runs/{first}", status=404)
    assert not server.state.keeper.directory(first).exists()


def test_a_sweep_is_seen_by_whom_its_lab_is_shared_with_and_by_nobody_else(server: Served) -> None:
    owner = server.client()
    for name in ("ann", "ben"):
        owner.api("POST", "/people", {"name": name})
    ann, ben = server.client("ann"), server.client("ben")
    lab = ann.keep()
    made = ann.api("POST", f"/labs/{lab}/sweeps", {"repeat": 2})
    ben.api("GET", f"/sweeps/{made['sweep']}", status=404)
    assert ben.api("GET", "/sweeps") == []
    ann.api("PUT", f"/labs/{lab}/shares/ben", {"role": "reader"})
    assert len(ben.api("GET", f"/sweeps/{made['sweep']}")["runs"]) == 2
    assert [one["sweep"] for one in ben.api("GET", "/sweeps")] == [made["sweep"]]
    ben.api("POST", f"/sweeps/{made['sweep']}/stop", status=403)
    for run in made["runs"]:
        ann.wait(run["run"], "finished")
