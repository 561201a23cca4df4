"""What the page draws from: plan, events and samples of runs, pieces of tables, positions of nodes, examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
    assert owner.api("GET", f"/labs/{lab}/layout") == {"positions": {}}
    positions = {"a": [1.5, -2.0], "<script>": [0.0, 0.0]}
    owner.api("PUT", f"/labs/{lab}/layout", {"positions": positions})
    assert owner.api("GET", f"/labs/{lab}/layout") == {"positions": positions}
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
    assert owner.api("GET", f"/labs/{lab}/layout") == {"positions": {}}


def test_examples_to_start_from_are_labs_without_mistakes_and_without_files_of_their_own(server: Served) -> None:
    owner = server.client()
    examples = owner.api("GET", "/examples")
    names = {example["name"] for example in examples}
    assert {"dumbbell", "fat-tree"} <= names and "abilene" not in names, "its topology is a file of its own"
    [dumbbell] = owner.api("GET", "/examples?name=dumbbell")
    assert dumbbell["title"].startswith("Dumbbell") and owner.api("POST", "/check", {"text": dumbbell["text"]})["plan"]
    assert owner.api("GET", "/examples?name=..") == []


def test_of_a_lab_that_is_drawn_the_plan_has_nodes_and_links_alone(server: Served) -> None:
    text = "name: ring\ntopology: {generate: ring, nodes: 5}\n"
    owner = server.client()
    whole = owner.api("POST", "/check", {"text": text})["plan"]
    drawn = owner.api("POST", "/check", {"text": text, "is_drawn": True})["plan"]
    assert set(drawn) == {"nodes", "links"} and drawn["links"] == whole["links"]
    assert [node["name"] for node in drawn["nodes"]] == [node["name"] for node in whole["nodes"]]
    assert "routes" not in drawn["nodes"][0] and drawn["nodes"][0]["interfaces"] == whole["nodes"][0]["interfaces"]
