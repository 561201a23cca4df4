"""Hosts are asked over whatever executes a command there, and whatever goes wrong with one is told with its name."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dilaton.cluster import beats
from dilaton.cluster.engines import having
from dilaton.cluster.engines.asking import FIRST_BEATS_MAX
from dilaton.cluster.engines.having import MARK, Has, Needs
from dilaton.cluster.engines.hosts import Hosts, Way
from dilaton.cluster.engines.processes import Processes
from dilaton.cluster.host_agent import THERE
from dilaton.cluster.values import to_json
from dilaton.host.errors import GuestError, HostLacksError, MachineLostError
from dilaton.host.tasks import within
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.run import machines
from tests.conftest import PATIENCE_HOST_S, environment

PROGRAM = shlex.join(["env", f"PYTHONPATH={environment()['PYTHONPATH']}", sys.executable, "-m", "dilaton"])

HOST_AGENT = THERE.decode()

PLAN = compile_plan(loads("name: lab\nnodes: {a: {}}\nrun: [{on: a, exec: sh}]", "lab.yaml"))


def shell(directory: Path, script: str = 'exec sh -c "$*"') -> list[str]:
    """What executes on a host, all of them being this machine."""
    file = directory / "shell"
    file.write_text(f"#!/bin/sh\nhost=$1; shift\n{script}\n")
    file.chmod(0o755)
    return [str(file)]


def look(names: list[str], way: Way) -> list[Has | str]:
    """What hosts have, or why that is not known."""
    return [str(each) if isinstance(each, GuestError) else each for each in asked(names, way)]


def asked(names: list[str], way: Way) -> list[Has | GuestError]:
    async def do() -> list[Has | GuestError]:
        hosts = Hosts(names, way)
        try:
            return await hosts.look(Needs())
        finally:
            await hosts.stop()

    return asyncio.run(do())


def test_a_host_says_what_it_has_whatever_its_shell_says_before(tmp_path: Path) -> None:
    way = Way(shell(tmp_path, 'echo "Welcome to $host"; exec sh -c "$*"'), PROGRAM, "")
    there, here = look(["alice@ws1", "localhost"], way)
    assert isinstance(there, Has) and isinstance(here, Has)
    # Which cores are free changes meanwhile.
    assert [replace(each, free_cores=0, runs=0) for each in (there, here)] == [
        replace(having.has(Needs()), free_cores=0, runs=0)
    ] * 2


def test_the_host_that_cannot_be_asked_is_named_with_what_its_shell_complains_of(tmp_path: Path) -> None:
    script = '[ $host = ws1 ] && { echo "ssh: connect to host ws1: No route to host" >&2; exit 255; }\nexec sh -c "$*"'
    first, second = look(["ws1", "ws2"], Way(shell(tmp_path, script), "/nowhere/dilaton", ""))
    assert first == "the host agent of ws1 ended with status 255: ssh: connect to host ws1: No route to host"
    assert isinstance(second, str)
    assert second.startswith("the host agent of ws2 ended with status 127: ")
    assert "/nowhere/dilaton" in second
    (why,) = look(["ws1"], Way(["/nowhere/ssh"], "dilaton", ""))
    assert why == "ws1: /nowhere/ssh cannot be started: No such file or directory"


@pytest.mark.parametrize("said", ["", HOST_AGENT])
def test_a_host_of_which_nothing_more_is_heard_is_given_up(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beats, "BEAT_HOST_S", 0.001)
    (why,) = look(["ws1"], Way(shell(tmp_path, f"echo 'Welcome'; printf %s '{said}'; exec cat"), PROGRAM, ""))
    limit = beats.SILENT_BEATS_MAX if said else FIRST_BEATS_MAX
    assert why.startswith(f"its host agent has said nothing for {limit / 1000:g} seconds")


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("echo Welcome; echo to ws1", "to ws1"),
        ("echo Welcome; echo waiting for the disk of /home >&2", "waiting for the disk of /home"),
    ],
)
def test_what_is_printed_in_place_of_the_first_word_is_told_with_the_silence(
    script: str, printed: str, tmp_path: Path
) -> None:
    async def do() -> None:
        agents = Processes()
        await agents.start("ws1", [*shell(tmp_path, f"{script}; exec cat"), "ws1"])
        hearing = asyncio.create_task(agents.hear("ws1", MARK))
        try:
            await within(PATIENCE_HOST_S, until(lambda: agents.printed("ws1") == printed))
        finally:
            hearing.cancel()
            await agents.stop()

    asyncio.run(do())


async def until(so: Callable[[], bool]) -> None:
    while not so():
        await asyncio.sleep(0.01)


def test_a_silence_ends_with_what_was_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beats, "BEAT_HOST_S", 0.001)
    for printed, told in (("", ""), ("Welcome", ": Welcome")):
        with pytest.raises(GuestError) as given_up:
            asyncio.run(beats.watch("ws1", lambda: 0, partial(str, printed), 10))
        assert str(given_up.value) == f"its host agent has said nothing for 0.01 seconds{told}"


@pytest.mark.parametrize("what", ["alive", "stopped"])
def test_the_end_of_what_starts_an_agent_is_told_whoever_still_has_its_streams(what: str, tmp_path: Path) -> None:
    left = "sleep 1000 & echo $! > {0}" + ("; kill -STOP $!" if what == "stopped" else "")
    script = f"{left.format(tmp_path / 'pid')}\necho 'ssh: connection reset' >&2; exit 255"
    try:
        (why,) = look(["ws1"], Way(shell(tmp_path, script), PROGRAM, ""))
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert why == "the host agent of ws1 ended with status 255: ssh: connection reset"


@pytest.mark.parametrize(
    ("script", "is_lost"),
    [
        ("kill -9 $$", True),
        ("exit 137", True),
        (f"printf %s '{HOST_AGENT}'; kill -9 $$", True),
        (f"printf %s '{HOST_AGENT}'; exit 255", True),
        ("exit 255", False),
        ("exit 127", False),
        ("exit 1", False),
        ("exit 0", False),
    ],
)
def test_an_agent_that_was_there_or_was_killed_is_lost_and_any_other_is_not_to_be_had(
    script: str, is_lost: bool, tmp_path: Path
) -> None:
    way = Way(shell(tmp_path, script), PROGRAM, "")
    (why,) = asked(["ws1"], way)
    assert isinstance(why, MachineLostError if is_lost else GuestError)
    assert isinstance(why, MachineLostError) == is_lost
    assert str(why).startswith("the host agent of ws1 ")

    async def do() -> None:
        hosts = Hosts(["ws1"], way)
        try:
            await hosts.hosts(PLAN, jailed=True)
        finally:
            await hosts.stop()

    with pytest.raises(MachineLostError if is_lost else HostLacksError, match=r"^ws1( did not join the run)?: "):
        asyncio.run(do())


@pytest.mark.parametrize("losses", [1, machines.LOOKS_MAX])
def test_hosts_whose_agents_are_lost_are_asked_again_before_they_are_refused(
    losses: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, count = tmp_path / "has", tmp_path / "count"
    file.write_text(MARK.decode() + json.dumps(to_json(having.has(Needs()))) + "\n")
    script = f'echo >> {count}; [ "$(wc -l < {count})" -le {losses} ] && kill -9 $$\ncat {file}; cat'
    monkeypatch.setenv(machines.SHELL, shlex.join(shell(tmp_path, script)))
    ((there, why),) = machines.look(["ws1"])
    if losses < machines.LOOKS_MAX:
        assert isinstance(there, Has) and not why
    else:
        assert why == ["the host agent of ws1 was killed by signal 9"]
    assert count.read_text() == "\n" * min(losses + 1, machines.LOOKS_MAX)


@pytest.mark.parametrize("said", ["{}", '{"version": 7}', "[", "null"])
def test_what_no_host_agent_says_is_refused(tmp_path: Path, said: str) -> None:
    (why,) = look(["ws1"], Way(shell(tmp_path, f"echo '{MARK.decode()}{said}'; cat"), PROGRAM, ""))
    assert "said what no host agent says" in str(why)


def test_a_run_is_refused_with_every_difference_of_every_host(tmp_path: Path) -> None:
    other = replace(having.has(having.needs(PLAN, jailed=True)), version="0.0", kernel="0" * 64)
    file = tmp_path / "other"
    file.write_text(MARK.decode() + json.dumps(to_json(other)) + "\n")

    async def do() -> None:
        hosts = Hosts(["ws1", "ws2"], Way(shell(tmp_path, f"cat {file}; cat"), PROGRAM, ""))
        try:
            await hosts.hosts(PLAN, jailed=True)
        finally:
            await hosts.stop()

    with pytest.raises(HostLacksError) as refused:
        asyncio.run(do())
    lines = refused.value.what.splitlines()
    assert [line.split(" has ")[0].split(" guests ")[0] for line in lines] == [
        "ws1: it",
        "ws1: its",
        "ws2: it",
        "ws2: its",
    ]
    assert refused.value.fix == "dilaton cluster status ws1 ws2"


@pytest.mark.parametrize(
    "name", ["", "-oProxyCommand=true", "a b", "ws1;true", "$(true)", "alice@", "alice@-x", "ws1@"]
)
def test_what_cannot_be_the_name_of_a_host_never_gets_to_a_shell(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a host"):
        Hosts([name], Way(["false"], "dilaton", ""))


def test_hosts_are_named_once() -> None:
    with pytest.raises(ValueError, match="ws1: named twice"):
        Hosts(["ws1", "ws1"], Way(["false"], "dilaton", ""))


@pytest.mark.parametrize(
    ("names", "hub", "address"),
    [
        (["localhost"], "", "127.0.0.1:0"),
        (["127.0.0.2", "alice@127.0.0.3"], "", "127.0.0.1:0"),
        (["ws1"], "192.0.2.1", "192.0.2.1:0"),
        (["ws1"], "192.0.2.1:7000", "192.0.2.1:7000"),
        (["ws1"], "2001:db8::1", "[2001:db8::1]:0"),
        (["ws1"], "[2001:db8::1]:7000", "[2001:db8::1]:7000"),
    ],
)
def test_the_hub_listens_where_all_hosts_reach_it(names: list[str], hub: str, address: str) -> None:
    assert Hosts(names, Way(["false"], "dilaton", hub)).address() == address


def test_a_host_that_has_no_address_is_told_with_what_to_do() -> None:
    with pytest.raises(GuestError, match=r"no\.such\.host\.invalid: by which address .* DILATON_HUB"):
        Hosts(["no.such.host.invalid"], Way(["false"], "dilaton", "")).address()
