"""Programs that a kind of node brings with it: processes like those of the lab, in the background."""

from __future__ import annotations

from dilaton.lab.model import READY_TIMEOUT_NS
from dilaton.plan import schedule
from dilaton.plan.model import Process, Ready


def daemon(node: str, program: str, argv: list[str], ready: Ready, after: list[str] | None = None) -> Process:
    """The process of a daemon, whose name is that of its node and program: `r1-bird`."""
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
        after=after or [],
        ready=ready,
        ready_timeout_ns=READY_TIMEOUT_NS,
        background=True,
        stop_ns=None,
        timeout_ns=None,
        expect_exit=None,
        stdout=f"nodes/{node}/{name}.stdout",
        stderr=f"nodes/{node}/{name}.stderr",
    )
