"""What a process of a lab is given, and what it leaves: one lab for all of it."""

from __future__ import annotations

import pytest

from tests.conftest import Outcome, RunLab

LAB = """
name: processes
nodes: {left: {}, right: {}}
links: ["left -- right"]
run:
  - {on: left, name: plain, exec: env}
  - {on: left, name: env, exec: env, env: {GREETING: "two words, ÄÖ=$x", PATH: /usr/bin}}
  - {on: left, name: cwd, exec: pwd, cwd: /usr/share}
  - {on: left, name: user, exec: "sh -c 'id -u; id -g; id -G; touch /etc/denied || echo denied'", user: nobody}
  - {on: left, name: number, exec: id -u, user: 4711}
  - {on: left, name: stdin, exec: wc -l, stdin: /etc/hosts}
  - {on: left, name: no-stdin, exec: cat}
  - {on: left, name: outputs, exec: "sh -c 'echo out; echo err >&2; exit 7'", expect_exit: 7}
  - {on: left, name: any, exec: "sh -c 'exit 9'", expect_exit: any}
  - {on: left, name: words, exec: "printf '<%s>' 'a b' $HOME \\"c\\" ''"}
  - {on: left, name: list, exec: [printf, "<%s>", a b, "$HOME", "'", ""]}
  - {on: right, name: hostname, exec: "sh -c 'hostname; cat /etc/hostname; uname -n'"}
  - {on: right, name: names, exec: getent ahostsv4 left}
  - {on: right, name: own-name, exec: getent ahostsv4 right}
  - {on: right, name: group, exec: [ps, -o, "pid=,sid=,pgid=,ni=,cls=,args=", -C, ps]}
  - {on: right, name: limits, exec: "sh -c 'ulimit -n; grep -E \\"Sig(Blk|Ign)\\" /proc/self/status'"}
  - {on: right, name: descriptors, exec: ls /proc/self/fd}
  - {on: right, name: orphans, exec: "sh -c 'sleep 1000 & echo left an orphan'"}
  - {on: right, name: large, exec: head -c 5000000 /dev/zero}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that all tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0
    return outcome


def test_the_environment_is_small_and_of_the_node_and_the_lab_adds_to_it(outcome: Outcome) -> None:
    plain = dict(line.split("=", 1) for line in outcome.stdout("left", "plain").splitlines())
    assert plain["HOSTNAME"] == "left"
    # Programs are told to do without AVX-512 where the host cannot hide it.
    assert set(plain) - {"GLIBC_TUNABLES"} == {"PATH", "HOME", "LANG", "HOSTNAME"}
    given = dict(line.split("=", 1) for line in outcome.stdout("left", "env").splitlines())
    assert given == plain | {"GREETING": "two words, ÄÖ=$x", "PATH": "/usr/bin"}


def test_working_directory_user_and_standard_input_are_as_asked(outcome: Outcome) -> None:
    assert outcome.stdout("left", "cwd") == "/usr/share\n"
    uid, gid, groups, denied = outcome.stdout("left", "user").splitlines()
    assert (uid, gid, groups, denied) == ("65534", "65534", "65534", "denied")
    assert outcome.stdout("left", "number") == "4711\n"
    assert int(outcome.stdout("left", "stdin").split()[0]) >= 2
    assert outcome.stdout("left", "no-stdin") == ""


def test_outputs_and_exit_status_are_kept_apart_and_whole(outcome: Outcome) -> None:
    directory = outcome.path / "nodes" / "left"
    assert (directory / "outputs.stdout").read_text() == "out\n"
    assert (directory / "outputs.stderr").read_text() == "err\n"
    assert [outcome.process(name)["exit"] for name in ("outputs", "any", "plain")] == [7, 9, 0]
    assert (outcome.path / "nodes" / "right" / "large.stdout").stat().st_size == 5_000_000


def test_a_command_is_split_into_words_and_no_shell_sees_it(outcome: Outcome) -> None:
    assert outcome.stdout("left", "words") == "<a b><$HOME><c><>"
    assert outcome.stdout("left", "list") == "<a b><$HOME><'><>"


def test_a_node_has_its_name_and_knows_all_names(outcome: Outcome) -> None:
    assert outcome.stdout("right", "hostname").split() == ["right"] * 3
    left = outcome.stdout("right", "names").split()[0]
    own = outcome.stdout("right", "own-name").split()[0]
    assert {left, own} == {"10.0.0.0", "10.0.0.1"}


def test_a_process_leads_its_own_session_at_ordinary_priority(outcome: Outcome) -> None:
    pid, session, group, nice, policy, *_ = outcome.stdout("right", "group").split()
    assert pid == session == group
    assert (nice, policy) == ("0", "TS")


def test_a_process_inherits_no_descriptor_no_blocked_and_no_ignored_signal(outcome: Outcome) -> None:
    # 3 is the directory that ls itself has open.
    assert outcome.stdout("right", "descriptors").split() == ["0", "1", "2", "3"]
    limit, blocked, ignored = outcome.stdout("right", "limits").splitlines()
    assert limit == "1024"
    assert {int(line.split()[1], 16) for line in (blocked, ignored)} == {0}


def test_the_events_tell_the_story_in_order(outcome: Outcome) -> None:
    events = outcome.events
    assert [event["t_ns"] for event in events] == sorted(event["t_ns"] for event in events)
    for process in outcome.record["processes"]:
        assert [event["kind"] for event in events if event["process"] == process["name"]] == ["started", "exited"]
        assert process["start_s"] == outcome.instant_s("started", process["name"])
        assert process["end_s"] == outcome.instant_s("exited", process["name"]) >= process["start_s"]
