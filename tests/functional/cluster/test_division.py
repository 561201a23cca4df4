"""Before a run over several machines it can be seen where guests will be, and what the links between machines cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT, dilaton, environment

LAB = ROOT / "examples/two-sites"


def machines(planned: str) -> dict[str, int | None]:
    return {guest["name"]: guest["machine"] for guest in json.loads(planned)["guests"]}


def test_plan_shows_the_machine_of_each_guest_and_what_cut_links_cost() -> None:
    done = dilaton("plan", LAB, "--machines", "2", "--set", "placement.server=0")
    assert machines(done.stdout) == {"guest0": 1, "guest1": 1, "guest2": 0}
    assert done.stderr.splitlines()[:3] == [
        "machine0: guest2",
        "machine1: guest0, guest1",
        "link router:eth1--server:eth0, from machine1 to machine0: 8 ms, about 56 ms of host time per virtual second "
        "while both ends work",
    ]
    assert set(machines(dilaton("plan", LAB).stdout).values()) == {None}


def test_hosts_are_asked_as_before_a_run() -> None:
    done = dilaton("plan", LAB, "--onto", "here", env=environment() | {"DILATON_RSH": "false"})
    assert done.returncode == 3
    assert "here: the host agent of here ended with status 1" in done.stderr


def test_graph_has_a_colour_for_each_machine(tmp_path: Path) -> None:
    out = tmp_path / "lab.svg"
    done = dilaton("graph", LAB, "--machines", "2", "-o", out)
    assert "machine0: guest0, guest1\n" in done.stdout
    drawn = out.read_text()
    assert all(words in drawn for words in ("host on machine0", "router on machine0", "host on machine1"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", LAB, "--machines", "4"), "--machines: 4: the lab has 3 guests"),
        (
            ("plan", LAB, "--machines", "2", "--set", "placement.server=2"),
            "--machines: 2: the lab's placement has guest2 on machine 2, and machines are numbered from 0",
        ),
        (
            ("graph", LAB, "--machines", "2", "-o", "lab.dot"),
            "lab.dot: machines are coloured in .svg, .png, .pdf alone",
        ),
        (("plan", LAB, "--onto", "-x"), "--onto: '-x': not the name of a host"),
    ],
)
def test_what_cannot_be_divided_so_is_refused(arguments: tuple[str | Path, ...], said: str) -> None:
    done = dilaton(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
