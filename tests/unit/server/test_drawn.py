"""What the page draws from: plan, events and samples of runs, pieces of tables, positions of nodes, examples."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.files import EXAMPLES
from dilaton.run.files.verdict_log import VERDICTS_FILE
from dilaton.server.api import schemas
from tests.unit.server.serving import Served, served, use_stub

COLUMNS = "t_ns,node,interface,tx_bytes\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server")) as found:
        use_stub(monkeypatch)
        yield found


def directory(server: Served, run: str) -> Path:
    return server.state.keeper.run_dir(run)


@pytest.fixture(scope="module")
def run(server: Served) -> str:
    owner = server.client()
    found = owner.launch(owner.keep())
    owner.wait(found, "finished")
    return found


def test_plan_and_events_of_a_run_are_as_it_has_written_them(server: Served, run: str) -> None:
    owner = server.client()
    assert [node["name"] for node in owner.api("GET", f"/runs/{run}/plan")["nodes"]] == ["a", "b"]
    lines = owner.ask("GET", f"/api/v1/runs/{run}/events")
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert b'"started"' in lines.body and lines.body == (directory(server, run) / "events.jsonl").read_bytes()


def test_how_the_verdict_of_a_run_stood_is_as_it_has_written_it(server: Served, run: str) -> None:
    owner = server.client()
    assert owner.ask("GET", f"/api/v1/runs/{run}/verdicts").body == b""
    written = b'{"at_ns":1000000000,"verdict":{"level":"valid","reasons":[]}}\n'
    (directory(server, run) / VERDICTS_FILE).write_bytes(written)
    lines = owner.ask("GET", f"/api/v1/runs/{run}/verdicts")
    assert (lines.headers["content-type"], lines.body) == ("application/x-ndjson", written)


def test_samples_come_in_pieces_and_who_goes_on_behind_the_last_byte_misses_nothing(server: Served, run: str) -> None:
    owner = server.client()
    asked = f"/api/v1/runs/{run}/samples?guest=guest0"
    assert owner.ask("GET", asked).status == 404
    table = directory(server, run) / "measure" / "guest0" / "interfaces.csv"
    table.parent.mkdir(parents=True)
    whole = COLUMNS + "".join(f"{n},a,eth0,{n}\n" for n in range(90_000))
    table.write_text(whole)
    got = b""
    while piece := owner.ask("GET", f"{asked}&start={len(got)}").body:
        assert len(piece) <= 1 << 20
        got += piece
    assert got == whole.encode() and len(got) > 1 << 20
    with table.open("a") as file:
        file.write("later\n")
    assert owner.ask("GET", f"{asked}&start={len(got)}").body == b"later\n"


def test_a_file_that_grows_is_followed_part_by_part(server: Served, run: str) -> None:
    owner = server.client()
    path = directory(server, run) / "nodes" / "a" / "grows.stdout"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"one\ntwo\n")
    asked = f"/api/v1/runs/{run}/files/nodes/a/grows.stdout"
    assert owner.ask("GET", f"{asked}?start=4").body == b"two\n"
    assert owner.ask("GET", f"{asked}?start=8").body == b""
    assert owner.ask("GET", f"{asked}?start=-3&count=2").body == b"wo"
    assert owner.ask("GET", f"{asked}?count=0").status == owner.ask("GET", f"{asked}?count=99999999").status == 422
    assert owner.ask("GET", f"{asked}?start=1").headers["content-disposition"].startswith("attachment")
    assert owner.ask("GET", asked).body == b"one\ntwo\n"


@pytest.mark.parametrize("guest", ["..", "../..", "a/b", "", "%00"])
def test_samples_are_of_guests_alone(server: Served, run: str, guest: str) -> None:
    assert server.client().ask("GET", f"/api/v1/runs/{run}/samples?guest={guest}").status == 422


def test_no_link_that_a_guest_has_put_into_the_run_directory_is_followed(server: Served, run: str) -> None:
    place = directory(server, run) / "measure" / "other"
    place.mkdir(parents=True)
    (place / "tcp.csv").symlink_to("/etc/passwd")
    assert server.client().ask("GET", f"/api/v1/runs/{run}/samples?guest=other&table=tcp").status == 404


def test_positions_are_kept_beside_a_lab_and_make_no_version_of_it(server: Served) -> None:
    owner = server.client()
    lab = owner.keep()
    assert owner.api("GET", f"/labs/{lab}/layout") == {"positions": {}, "places": {}}
    positions = {"a": [1.5, -2.0], "<script>": [0.0, 0.0]}
    owner.api("PUT", f"/labs/{lab}/layout", {"positions": positions})
    assert owner.api("GET", f"/labs/{lab}/layout") == {"positions": positions, "places": {}}
    assert owner.api("GET", f"/labs/{lab}")["version"] == 1
    owner.api("DELETE", f"/labs/{lab}")
    assert not list(server.settings.layouts.iterdir())


@pytest.mark.parametrize(
    "wrong", [b'{"positions": {"a": [NaN, 0]}}', b'{"positions": {"a": [1]}}', b'{"positions": 3}']
)
def test_positions_that_are_none_change_nothing(server: Served, wrong: bytes) -> None:
    owner = server.client()
    lab = owner.keep()
    answer = owner.ask("PUT", f"/api/v1/labs/{lab}/layout", wrong, **{"Content-Type": "application/json"})
    assert answer.status == 422
    assert owner.api("GET", f"/labs/{lab}/layout") == {"positions": {}, "places": {}}


def test_examples_to_start_from_are_labs_without_mistakes_whose_files_are_in_their_text(server: Served) -> None:
    owner = server.client()
    examples = owner.api("GET", "/examples")
    assert [example["name"] for example in examples] == [
        path.parent.name for path in sorted(EXAMPLES.glob("*/lab.yaml"))
    ]
    for named in ("dumbbell", "failover-redis", "abilene"):
        [example] = owner.api("GET", f"/examples?name={named}")
        assert owner.api("POST", "/check", {"text": example["text"]})["plan"]
    [dumbbell] = owner.api("GET", "/examples?name=dumbbell")
    assert dumbbell["title"].startswith("Dumbbell") and dumbbell["places"] == {}
    [abilene] = owner.api("GET", "/examples?name=abilene")
    assert abilene["places"]["denver"] == [-104.99, 39.74]
    assert owner.api("GET", "/examples?name=..") == []


KINDS = """\
name: kinds
groups: {leaf: {kind: ovs}}
nodes: {a: {}, b: {}, c: {}, middle: {}, leaf1: {group: leaf}, home: {kind: nat, outside: eth0}}
links:
  - {endpoints: [a, middle], rate: 10Mbit, delay: 5ms}
  - middle -- leaf1
  - leaf1 -- home
  - {endpoints: [home, b, c]}
run:
  - {on: a, name: first, exec: "true", start: 1s}
measure: {interfaces: 100ms, capture: ["a:eth0"]}
expect: [first.exit == 0]
"""


def test_a_drawing_says_what_nodes_are_and_leaves_out_what_nobody_draws(server: Served) -> None:
    owner = server.client()
    asked = owner.api("POST", "/check", {"text": KINDS, "is_drawn": True})
    drawing, whole = asked["drawing"], owner.api("POST", "/check", {"text": KINDS})
    assert asked["plan"] is None and whole["drawing"] == drawing
    kinds = {node["name"]: node["kind"] for node in drawing["nodes"]}
    hosts = dict.fromkeys("abc", "host")
    assert kinds == hosts | {"middle": "router", "leaf1": "ovs", "home": "nat", "lan0": "switch"}
    assert [link["name"] for link in drawing["links"]] == [link["name"] for link in whole["plan"]["links"]]
    end = drawing["links"][0]["ends"][0]
    assert end == {"node": "a", "interface": "eth0", "rate_bit_per_s": 10e6, "delay_ns": 5_000_000}
    assert [program["start_ns"] for program in drawing["programs"] if program["name"] == "first"] == [10**9]
    assert drawing["interfaces_period_ns"] == 10**8 and drawing["captures"][0]["interface"] == "eth0"
    assert drawing["guests"] == ["guest0"] and "routes" not in drawing["nodes"][0]


COURSE = """\
name: course
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 10Mbit, delay: 5ms}]
run:
  - {on: b, name: server, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: a, name: bulk, exec: iperf3 -c b -t 8, after: server, start: 2s}
  - {on: a, name: work, exec: sh -c work}
  - {on: b, name: endless, exec: sleep infinity, background: true}
  - {on: a, name: never, exec: "true", after: endless.end}
changes:
  - {at: 3s, link: a--b, rate: 5Mbit}
faults:
  - {name: cut, at: 4s, for: 500ms, link: a--b, down: true}
  - {name: later, after: bulk.end, wait: 1s, pause: b}
  - {after: endless.end, pause: a}
"""


def test_a_drawing_says_when_all_is_to_happen_as_far_as_that_can_be_told(server: Served) -> None:
    found = server.client().api("POST", "/check", {"text": COURSE, "is_drawn": True})["drawing"]
    programs = {one["name"]: (one["begin_ns"], one["end_ns"], one["is_earliest"]) for one in found["programs"]}
    second = 10**9
    assert programs == {
        "server": (0, None, False),
        "bulk": (2 * second, 10 * second, True),
        "work": (0, None, False),
        "endless": (0, None, False),
        "never": (None, None, True),
    }
    course = [(one["name"], one["at_ns"], one["is_earliest"], one["for_ns"], one["what"]) for one in found["course"]]
    assert course == [
        ("", 3 * second, False, None, "rate 5Mbit"),
        ("cut", 4 * second, False, second // 2, "link a--b down"),
        ("later", 11 * second, True, None, "pause b"),
        ("fault3", None, True, None, "pause a"),
    ]
    assert [one["link"] for one in found["course"]] == ["a:eth0--b:eth0", "", "", ""]


def test_a_drawing_says_what_a_run_is_likely_to_take(server: Served) -> None:
    ask = server.client().api
    asked = "name: cost\nnodes: {a: {}, b: {}}\nlinks: [{endpoints: [a, b], rate: 100Mbit}]\nrun:\n"
    asked += "  - {on: b, name: sink, exec: iperf3 -s, background: true}\n  - {on: a, exec: iperf3 -c b -t 20}\n"
    found = ask("POST", "/check", {"text": asked, "is_drawn": True})["drawing"]["forecast"]
    assert (found["virtual_s"], found["is_earliest"]) == (20, False) and found["host_s"] > 0
    assert "100Mbit" in found["hint"].replace(" ", "")
    assert (found["link"], found["load"]) == ("a:eth0--b:eth0", pytest.approx(1, rel=0.5))
    loads = {
        written: ask("POST", "/check", {"text": f"{asked}time: {{{written}}}\n", "is_drawn": True})["drawing"][
            "forecast"
        ]["load"]
        for written in ("tdf: 1/10", "tdf: 1", "tdf: auto", "drive: event")
    }
    assert loads["tdf: 1/10"] > 1 and loads["tdf: 1/10"] == pytest.approx(10 * loads["tdf: 1"])
    assert loads["tdf: auto"] == loads["drive: event"] == 0
    for written, tdf in (("tdf: 3", 3.0), ("tdf: auto", None), ("drive: work", 1.0)):
        text = f"{asked}time: {{{written}}}\n"
        assert ask("POST", "/check", {"text": text, "is_drawn": True})["drawing"]["forecast"]["tdf"] == tdf, written
    short = ask("POST", "/check", {"text": "name: x\nnodes: {a: {}}\n", "is_drawn": True})["drawing"]["forecast"]
    assert short["virtual_s"] is None and short["host_s"] is None


def test_a_drawing_of_a_large_network_is_small(server: Served) -> None:
    text = "name: grid\ntopology: {generate: grid, rows: 12, columns: 12}\n"
    found = server.client().api("POST", "/check", {"text": text})
    assert 10 * len(json.dumps(found["drawing"])) < len(json.dumps(found["plan"]))


def test_a_run_is_drawn_from_the_moment_it_is_asked_for_and_no_guest_writes_that(server: Served, run: str) -> None:
    owner = server.client()
    drawing = owner.api("GET", f"/runs/{run}/drawing")
    assert [(node["name"], node["kind"]) for node in drawing["nodes"]] == [("a", "host"), ("b", "host")]
    (directory(server, run) / "drawing.json").write_text("{}")
    assert owner.api("GET", f"/runs/{run}/drawing") == drawing


def test_the_schema_of_labs_is_made_once_however_many_ask_for_it_at_the_same_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once, most = 0, 0
    all_ask = threading.Barrier(4)

    def made() -> dict[str, Any]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        # Whoever else could come in by then has.
        time.sleep(0.05)
        at_once -= 1
        return {}

    def ask() -> None:
        all_ask.wait()
        schemas.show_lab_schema()

    monkeypatch.setattr(schemas, "lab_schema", made)
    schemas._schema.cache_clear()
    asking = [threading.Thread(target=ask) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    schemas._schema.cache_clear()
    assert most == 1
