"""Whoever a program is to run as is there, where that can be known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dilaton.lab import Lab, LabError
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.machine import Machine
from dilaton.plan.users import users_in

PASSWD = "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1::/:/bin/false\n+\n"


def compiled(node: dict[str, Any] | None = None, passwd: str | None = PASSWD, **process: Any) -> list[str]:
    """The users of the plan of a lab with one program."""
    lab = Lab.model_validate({"name": "x", "nodes": {"a": node}, "run": [{"on": "a", "exec": "true", **process}]})
    plan = compile_plan(lab, Machine(users=None if passwd is None else users_in(passwd)))
    return [each.user for each in plan.processes]


@pytest.mark.parametrize(
    ("user", "hint"), [("deamon", "did you mean daemon?"), ("alice", "known: daemon, root"), ("4294967296", "known:")]
)
def test_a_user_whom_the_machine_does_not_have_is_refused(user: str, hint: str) -> None:
    with pytest.raises(LabError) as error:
        compiled(user=user)
    said = str(error.value)
    assert said.startswith(f"run[0].user: unknown user {user}; {hint}")
    assert said.endswith("; a node has the users of this machine")


@pytest.mark.parametrize("user", ["root", "daemon", "4711", "4294967295"])
def test_a_user_of_the_machine_is_there_and_so_is_a_number(user: str) -> None:
    assert compiled(user=user) == [user]


def test_a_user_who_may_be_there_by_then_is_not_judged(tmp_path: Path) -> None:
    assert compiled(user="alice", passwd=None) == ["alice"]
    assert compiled(user="alice", start="1ms") == ["alice"]
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    disk = {"fixed": {"read_latency": "1ms", "write_latency": "1ms"}, "image": str(image)}
    assert compiled({"disk": disk}, user="alice") == ["alice"]
