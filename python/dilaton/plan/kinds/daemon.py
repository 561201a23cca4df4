"""Programs that a kind of node brings with it: processes like those of the lab."""

from __future__ import annotations

from dilaton.plan import schedule
from dilaton.plan.course.entries import Awaited
from dilaton.plan.model import Process, Ready

AGENT = "/proc/1/exe"
"""The agent's own program, in every node: it is that of process 1."""

READY_TIMEOUT_NS = 120 * 10**9
"""More than a lab's own processes have by default: all daemons start at once and share the CPU of their guest."""


def daemon(node: str, program: str, argv: list[str], ready: Ready, after: list[str] | None = None) -> Process:
    """The process of a daemon, whose name is that of its node and program: `r1-bird`."""
    return _process(node, program, argv).model_copy(
        update={
            "ready": ready,
            "after": [Awaited(name=name, moment="milestone") for name in after or []],
            "background": True,
            "boot": True,
        }
    )


def setup(node: str, program: str, argv: list[str]) -> Process:
    """The process of a program that sets something up and is done; without success the run fails."""
    return _process(node, program, argv).model_copy(update={"expect_exit": 0})


def _process(node: str, program: str, argv: list[str]) -> Process:
    name = f"{node}-{program}"
    return Process(
        name=name,
        node=node,
        argv=argv,
        env=schedule.environment(node),
        cwd="/",
        user="root",
        stdin="/dev/null",
        start_ns=0,
        after=[],
        ready=None,
        ready_timeout_ns=READY_TIMEOUT_NS,
        background=False,
        stop_ns=None,
        timeout_ns=None,
        expect_exit=None,
        restart=None,
        boot=False,
        stdout=f"nodes/{node}/{name}.stdout",
        stderr=f"nodes/{node}/{name}.stderr",
    )
