"""The reproductions of DieCast's figures, in small versions that show the same."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import ROOT, dilaton
from tests.functional.papers.test_papers_pads15 import rows

PAPERS = ROOT / "papers"


def test_dbench_finds_the_same_disk_at_every_tdf_if_cpu_and_disk_are_scaled(tmp_path: Path) -> None:
    """Not scaled, a disk looks as much faster as time is slower.

    With a CPU that is fast enough for most of the time to be the disk's, whatever the host's core does.
    """
    arguments = ["--tdfs", "1,3", "--seconds", "2", "--clients", "2", "--faster", "20"]
    one, three = ([float(cell) for cell in row[1:]] for row in rows("diecast-disk", "--out", str(tmp_path), *arguments))
    assert one[0] == one[1] == one[2] > 0
    neither, cpu, both = three
    # The rest is the host's, whose core may be half as fast in the one run as in the other.
    assert both == pytest.approx(one[2], rel=0.25)
    assert min(neither, cpu) > 1.3 * both
    assert (tmp_path / "figure-2c.svg").is_file()


@pytest.fixture
def reproduce(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """The program of a reproduction, whose runs, of minutes or hours, are made by hand."""

    def found(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, PAPERS / name / "reproduce.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return found


def is_good(lab: dict[str, Any], directory: Path) -> bool:
    (path := directory / "lab.yaml").write_text(json.dumps(lab))
    return dilaton("check", path).returncode == 0


def with_little_memory(lab: dict[str, Any]) -> dict[str, Any]:
    """The lab, whatever memory the host has."""
    return lab | {"guests": {name: guest | {"memory": "128MiB"} for name, guest in lab["guests"].items()}}


@pytest.mark.parametrize("placed", ["baseline", "DieCast", "no DieCast"])
@pytest.mark.parametrize("experiment", ["failure", "stress DB", "stress CPU"])
def test_isaac_is_a_good_lab_at_the_size_of_the_paper(
    tmp_path: Path, reproduce: Callable[[str], ModuleType], experiment: str, placed: str
) -> None:
    isaac = reproduce("diecast-isaac")
    chosen = argparse.Namespace(servers=4, clients=28, requests=20, pause=20.0, fail_at=200.0, fail_for=60.0)
    lab = isaac.lab(isaac.Case(experiment, placed), chosen)
    machines = [node for name, node in lab["nodes"].items() if name != "core"]
    assert (len(machines), len({node["guest"] for node in machines})) == (40, 40 if placed == "baseline" else 4)
    assert is_good(lab, tmp_path)


@pytest.mark.parametrize(
    ("clients", "placed", "machines"),
    [(10, "baseline", 10), (10, "DieCast", 1), (250, "DieCast", 25)],
)
def test_clients_of_one_storage_are_a_good_lab_at_sizes_of_the_paper(
    tmp_path: Path, reproduce: Callable[[str], ModuleType], clients: int, placed: str, machines: int
) -> None:
    """Links, wires and the length of the lab, that is: 250 clients take memory that not every host has."""
    panfs = reproduce("diecast-panfs")
    lab = panfs.lab(panfs.Case(clients, 16384, 4 * 16384, placed))
    assert len({lab["nodes"][f"c{number}"]["guest"] for number in range(clients)}) == machines
    assert is_good(with_little_memory(lab), tmp_path)


RUBIS = {"users": 100_000, "think": 7.0, "warm": 60.0, "length": 600.0, "down": 60.0}


@pytest.mark.parametrize("placed", ["baseline", "DieCast", "no DieCast"])
def test_the_auction_service_is_a_good_lab_at_the_size_of_the_paper(
    tmp_path: Path, reproduce: Callable[[str], ModuleType], placed: str
) -> None:
    """With 8 databases, 16 web servers and 16 load generators at two sites."""
    rubis = reproduce("diecast-rubis")
    chosen, case = argparse.Namespace(servers=8, **RUBIS), rubis.Case(4800, placed)
    lab, given = rubis.lab(case, chosen), rubis.settings(case, chosen)
    machines = [node for name, node in lab["nodes"].items() if name[0] in "dwg"]
    assert (len(machines), len({node["guest"] for node in machines})) == (40, 40 if placed == "baseline" else 4)
    served = list(enumerate(given["database"]))
    for site in (0, 1):
        far = [database for number, database in served if number % 2 == site and int(database[1:]) % 2 != site]
        assert len(far) == len(set(far)) == 4, "half of the web servers have their database at the other site"
    assert sorted(given["database"]) == sorted(2 * [f"d{number}" for number in range(8)])
    assert given["sessions"] * 16 == 4800
    assert is_good(with_little_memory(lab), tmp_path)


def test_an_auction_service_that_shares_a_machine_in_virtual_time_serves_its_sessions(tmp_path: Path) -> None:
    """Ten machines on one: all pages come, as many as sessions that think for a second ask for, and not too soon."""
    size = ["--servers", "2", "--sessions", "20", "--users", "200", "--think", "1", "--cases", "DieCast"]
    [row] = rows("diecast-rubis", "--out", str(tmp_path), *size, "--warm", "0.5", "--length", "3", "--down", "0.2")
    pages_per_s, mean_ms, failed = float(row[2]), float(row[3]), int(row[6])
    # What sessions draw is the same in each run; the first page comes sooner than others, and then all think.
    assert pages_per_s == pytest.approx(18, rel=0.2)
    # To connect, and then to ask, twice 2 ms each way.
    assert 8 < mean_ms < 200
    assert failed == 0
    assert (tmp_path / "figure-8.svg").is_file()


def test_a_seventh_of_the_pages_of_the_auction_service_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in RUBiS's mix of bids: in the long run, wherever sessions begin."""
    monkeypatch.syspath_prepend(str(PAPERS / "diecast-rubis"))
    auction = importlib.import_module("auction")
    assert {sum(after.values()) for after in auction.NEXT.values()} == {100}
    share = dict.fromkeys(auction.NEXT, 1 / len(auction.NEXT))
    for _ in range(500):
        moved = {
            page: sum(share[one] * after.get(page, 0) / 100 for one, after in auction.NEXT.items()) for page in share
        }
        share = {page: (share[page] + moved[page]) / 2 for page in share}
    assert sum(share[page] for page in auction.WRITES) == pytest.approx(1 / 7, abs=0.01)
