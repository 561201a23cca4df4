"""What would go wrong in a run is seen before, where it is certain; and what may be right is let pass."""

from __future__ import annotations

import re

import pytest

from dilaton.host.here.doctor.programs import PACKAGES
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.forecast.foresight import Sight, doubts, lacks, mistakes, programs_needed, unending
from tests.conftest import ROOT

THERE = {"ping", "iperf3", "python3", "sh", "/usr/local/bin/mine"}
SIGHT = Sight(
    executes=lambda program, _: program in THERE,
    reads=lambda path: path == "/srv/there.py",
    hides=lambda path: path.startswith(("/tmp/there", "/opt/there")),  # noqa: S108 - nothing is written
    controls={"cubic", "reno", "bbr"},
)
HEAD = "name: x\nnodes: {a: , b: }\nlinks: [a -- b]\n"


def seen(text: str) -> list[str]:
    lab = loads(HEAD + text if text.startswith("run") else text, "lab.yaml")
    plan = compile_plan(lab)
    found = [f"{lack.field}: {lack.program}" for lack in lacks(lab, plan, SIGHT)]
    return found + [f"{each.field}: {each.message}" for each in (*mistakes(lab, SIGHT), *doubts(lab, plan))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run: [{on: a, exec: wrk http://b}]\n", ["run[0].exec: wrk"]),
        ("run: [{on: a, exec: /opt/x y, start: 1s}]\n", ["run[0].exec: /opt/x"]),
        ("name: x\nnodes: {s: {kind: controller}}\n", ["nodes.s: ovs-testcontroller"]),
        ("run: [{on: a, exec: ping -c 1 bee}]\n", ["run[0].exec: unknown host bee; known: a, b"]),
        ("run: [{on: a, exec: ping bee -c 1}]\n", ["run[0].exec: unknown host bee; known: a, b"]),
        (
            "run: [{on: a, exec: iperf3 -c b -t 0.5}]\n",
            ["run[0].exec: time 0.5: iperf3 reads whole seconds; of less than one it makes 0, which is without end"],
        ),
        (
            "run: [{on: a, exec: iperf3 -c b --time 12.5}]\n",
            ["run[0].exec: time 12.5: iperf3 reads whole seconds; it takes 12"],
        ),
        (
            "run: [{on: a, exec: ping -w 9 b}]\nchanges: [{at: 1s, link: a--b, down: true}]\n",
            ["run[0].exec: with -w ping ends when a router says that it has no way, as after a cut; -c goes on"],
        ),
        ("run: [{on: a, exec: ping -w 0.5 b}]\n", ["run[0].exec: -w 0.5: ping takes whole seconds"]),
        ("run: [{on: a, exec: ping -W 0.5 -i 0.1 -c1.5 b}]\n", ["run[0].exec: -c 1.5: ping takes whole numbers"]),
        (
            "run: [{on: a, exec: iperf -c b}]\n",
            [
                "run[0].exec: iperf",
                "run[0].exec: nothing is read of what iperf prints; iperf3 -J gives rates and losses",
            ],
        ),
        ("run: [{on: a, exec: iperf3 -c server}]\n", ["run[0].exec: unknown host server; known: a, b"]),
        (
            "run: [{on: a, exec: iperf3 -c b -C bbr3}]\n",
            ["run[0].exec: bbr3: the guest's kernel has no such congestion control"],
        ),
        (
            "name: x\nnodes: {a: , b: , c: }\nlinks: [a -- b]\n",
            ["nodes.c: no link ends here, so that nothing can reach it"],
        ),
        ("run: [{on: a, exec: python3 /srv/gone.py}]\n", ["run[0].exec: /srv/gone.py: there is no such file"]),
        ("run: [{on: a, exec: python3 there.py, cwd: /srv}]\n", []),
        (f"{HEAD}files: /srv\nrun: [{{on: a, exec: python3 there.py x}}]\n", []),
        (
            f"{HEAD}files: /srv\nrun: [{{on: a, exec: python3 gone.py}}]\n",
            ["run[0].exec: /srv/gone.py: there is no such file"],
        ),
        (f"{HEAD}files: /opt\nrun: [{{on: a, exec: python3 there.py}}]\n", []),
        (
            "run: [{on: a, exec: python3 load.py}]\n",
            ["run[0].exec: /load.py: there is no such file; nodes see what is beside the lab with files: ."],
        ),
        (
            "run: [{on: a, exec: ./load.sh}]\n",
            [
                "run[0].exec: /./load.sh",
                "run[0].exec: /./load.sh: there is no such file; nodes see what is beside the lab with files: .",
            ],
        ),
        (
            "run: [{on: a, exec: bin/load, cwd: /srv}]\n",
            [
                "run[0].exec: /srv/bin/load",
                "run[0].exec: /srv/bin/load: there is no such file; nodes see what is beside the lab with files: .",
            ],
        ),
        ("run: [{on: a, exec: sh program}]\n", []),
    ],
)
def test_what_is_wrong_is_seen_before(text: str, said: list[str]) -> None:
    assert seen(text) == said


@pytest.mark.parametrize("command", ["/tmp/there", "python3 /tmp/there.py", "sh /tmp/there.sh x"])  # noqa: S108 - nothing is written
def test_a_script_that_nodes_do_not_see_is_told(command: str) -> None:
    [said] = seen(f"run: [{{on: a, exec: {command}}}]\n")
    assert "nodes have a /tmp" in said and command.split()[-1 if "x" not in command.split() else 1] in said


@pytest.mark.parametrize(
    "text",
    [
        "run: [{on: a, exec: wrk http://b, expect_exit: any}]\n",
        "run: [{on: a, exec: ping -w 9 -c 1 b}, {on: b, exec: ping -w 9 a, name: q}]\n",
        "run: [{on: a, name: make, exec: sh -c make}, {on: a, exec: /opt/made, after: make}]\n",
        "run: [{on: a, exec: ping -c 1 10.0.0.1}, {on: b, name: v6, exec: 'ping -c 1 ::1'}]\n",
        "run: [{on: a, exec: iperf3 -c localhost -C bbr}, {on: b, exec: python3 -c pass}]\n",
        "run: [{on: a, exec: python3 /srv/there.py}, {on: b, exec: mine, env: {PATH: /x}, expect_exit: 127}]\n",
        "name: x\nnodes: {a: {disk: ssd-sata}, b: }\n",
    ],
)
def test_what_may_be_right_is_let_pass(text: str) -> None:
    assert seen(text) == []


@pytest.mark.parametrize(
    ("process", "more", "ends"),
    [
        ("exec: ping b", "", False),
        ("exec: ping -i 0.1 b", "", False),
        ("exec: ping -w 5 b", "", True),
        ("exec: ping -c5 b", "", True),
        ("exec: iperf3 -s", "", False),
        ("exec: iperf3 -s -1", "", True),
        ("exec: iperf3 -c b", "", True),
        ("exec: iperf3 -c b -t 0", "", False),
        ("exec: iperf3 -c b -t 0.5", "", False),
        ("exec: iperf3 -c b -t 0 -n 1M", "", True),
        ("exec: ping b, background: true", "", True),
        ("exec: ping b, stop: 5s", "", True),
        ("exec: ping b, timeout: 5s", "", True),
        ("exec: ping b", "stop_after: 5s\n", True),
    ],
)
def test_programs_that_never_end_are_known(process: str, more: str, ends: bool) -> None:
    lab = loads(f"{HEAD}{more}run: [{{on: a, {process}}}]\n", "lab.yaml")
    assert [each.name for each in unending(lab)] == ([] if ends else [lab.run[0].name])


CROWD = "name: x\nnodes: {{a: , b: }}\nlinks: [{{endpoints: a -- b, delay: 1ms}}]\n{more}run:\n{run}"


def crowd(count: int, more: str = "", each: str = "") -> list[str]:
    """What is said of a lab in which so many programs start."""
    run = "".join(
        f"  - {{on: {'ab'[number % 2]}, name: p{number}, exec: ping -c 1 b{each}}}\n" for number in range(count)
    )
    return seen(CROWD.format(more=more, run=run))


def test_programs_of_which_the_last_start_long_after_the_first_are_told_with_what_helps() -> None:
    assert crowd(100) == []
    assert crowd(250) == [
        "run[249].exec: with it 250 programs start at one instant in one guest, which takes about 2.5 s of virtual time "
        "at tdf 1: who asks another one before may find nobody; start it later or after: one that is ready:, or raise "
        "tdf to 3"
    ]
    for more in ("{tdf: 3}", "{tdf: auto}", "{drive: event}"):
        assert crowd(250, f"time: {more}\n") == []
    assert crowd(250, "guests: per-node\n")[0].startswith("run[248].exec: with it 125 programs")
    assert crowd(180, "guests: per-node\n") == []


def test_programs_that_wait_for_others_or_start_at_other_instants_are_no_crowd() -> None:
    waiting = "  - {on: a, name: first, exec: ping -c 1 b}\n" + "".join(
        f"  - {{on: a, name: p{number}, exec: ping -c 1 b, after: first}}\n" for number in range(250)
    )
    assert seen(CROWD.format(more="", run=waiting)) == []
    apart = "".join(
        f"  - {{on: a, name: p{number}, exec: ping -c 1 b, start: {number % 5}s}}\n" for number in range(250)
    )
    assert seen(CROWD.format(more="", run=apart)) == []


def test_all_programs_of_a_lab_are_known_with_whether_nodes_find_them() -> None:
    lab = loads(
        "name: x\nnodes: {a: {kind: router}, s: {kind: ovs}, b: }\nlinks: [a -- s, s -- b, a -- b]\nrouting: ospf\n"
        "run: [{on: a, exec: ping b}, {on: b, exec: ./own, cwd: /opt}, {on: b, name: more, exec: ping a}]\n",
        "lab.yaml",
    )
    needed = programs_needed(lab, compile_plan(lab), lambda program, search: program != "ping" and "/bin" in search)
    assert needed["bird"] and needed["ovs-vsctl"] and not needed["ping"]
    assert any(program.endswith("/opt/./own") for program in needed)
    assert sum(not is_here for is_here in needed.values()) == 1


def test_the_table_of_programs_in_the_documents_is_that_by_which_what_is_missing_is_told() -> None:
    rows = re.findall(r"^\| (`.*`) \| `(.*)` \|$", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    listed = {program: package for cell, package in rows for program in re.findall(r"`(.*?)`", cell)}
    assert listed == PACKAGES
