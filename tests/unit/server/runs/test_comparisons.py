"""Runs of a server compared, by a worker that sees their directories and nothing else of the server's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.server.serving import LAB, Served, served, use_stub

FIELDS = [{"path": "links.0.delay", "values": ["1ms", "2ms"]}]
WIDE = LAB.replace("[a -- b]", "[{endpoints: [a, b], delay: 5ms}]")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server"), at_once=4) as found:
        use_stub(monkeypatch)
        yield found


def measured(server: Served, run: str, value: float) -> None:
    """Has a run have measured something."""
    path = server.state.keeper.run_dir(run) / "run.json"
    record = json.loads(path.read_text())
    samples = [value + n / 1e6 for n in range(50)]
    record["processes"][0]["result"] = {"rtt": {"mean": value}, "samples": samples, "loss": 0.0}
    path.write_text(json.dumps(record))


def sweep(server: Served, repeat: int) -> Any:
    owner = server.client()
    made = owner.api("POST", f"/labs/{owner.keep(WIDE)}/sweeps", {"fields": FIELDS, "repeat": repeat})
    for n, run in enumerate(made["runs"]):
        owner.wait(run["run"], "finished")
        measured(server, run["run"], 0.010 if n < repeat else 0.020)
    return made


def test_runs_that_differ_are_told_and_by_how_much(server: Served) -> None:
    owner = server.client()
    made = sweep(server, 4)
    same = owner.api("POST", "/comparisons", {"runs": [run["run"] for run in made["runs"][:2]]})
    assert (same["is_different"], same["verdict"]) == (False, "indistinguishable")
    other = owner.api("POST", "/comparisons", {"runs": [made["runs"][n]["run"] for n in (0, 7)]})
    [row] = [row for row in other["rows"] if row["metric"].endswith("rtt")]
    assert other["is_different"] and row["is_different"] and 0.9 < row["distance"]["relative"] < 1.1
    assert row["reference"]["count"] == 50 and row["unit"] == "s"
    of_sets = owner.api("POST", "/comparisons", {"sweep": made["sweep"]})
    assert of_sets["is_different"] and {row["run"] for row in of_sets["rows"]} == {"links.0.delay=2ms"}
    assert of_sets["together"][0]["is_different"]
    tolerant = owner.api("POST", "/comparisons", {"sweep": made["sweep"], "by": "links.0.delay", "tolerance": 1.0})
    assert not tolerant["is_different"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"runs": ["x"]}, 422),
        ({"runs": ["x", "x"]}, 422),
        ({"runs": ["x", "y"]}, 404),
        ({"sweep": "x"}, 404),
        ({"sweep": "x", "runs": ["x", "y"]}, 422),
        ({}, 422),
    ],
)
def test_what_cannot_be_compared_is_told(server: Served, asked: dict[str, Any], status: int) -> None:
    server.client().api("POST", "/comparisons", asked, status)


def test_nobody_compares_what_they_may_not_see(server: Served) -> None:
    owner = server.client()
    owner.api("POST", "/people", {"name": "ann"})
    made = sweep(server, 1)
    runs = [run["run"] for run in made["runs"]]
    server.client("ann").api("POST", "/comparisons", {"runs": runs}, 404)
    server.client("ann").api("POST", "/comparisons", {"sweep": made["sweep"]}, 404)
    owner.api("POST", "/comparisons", {"sweep": made["sweep"], "by": "links.0.rate"}, 422)


def test_what_a_guest_has_put_into_a_run_leads_the_worker_nowhere(server: Served) -> None:
    owner = server.client()
    made = sweep(server, 1)
    runs = [run["run"] for run in made["runs"]]
    record = server.state.keeper.run_dir(runs[1]) / "run.json"
    record.unlink()
    os.symlink(server.settings.directory / "server.sqlite", record)
    said = owner.api("POST", "/comparisons", {"runs": runs}, 422)
    assert "SQLite" not in said["detail"] and str(server.settings.directory) not in said["detail"]
    record.unlink()
    record.write_text("[" * 100_000)
    owner.api("POST", "/comparisons", {"runs": runs}, 422)
