"""What runs, when and how: the processes of a plan."""

from __future__ import annotations

from dilaton.lab import model as lab
from dilaton.lab.model import READY_TIMEOUT_NS
from dilaton.plan.model import Process, Ready, ReadyDelay, ReadyOutput, ReadyTcp

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment(node: str) -> dict[str, str]:
    """The environment that every process of a node has."""
    return {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "HOSTNAME": node}


def process(written: lab.Process) -> Process:
    """The process of a plan that a lab's process means."""
    output = f"nodes/{written.on}/{written.name}"
    return Process(
        name=written.name,
        node=written.on,
        argv=written.argv,
        env=environment(written.on) | written.env,
        cwd=written.cwd,
        user=written.user,
        stdin=written.stdin,
        start_ns=written.start_ns,
        after=written.after,
        ready=_ready(written.ready),
        ready_timeout_ns=written.ready.timeout_ns if written.ready else READY_TIMEOUT_NS,
        background=written.background,
        stop_ns=written.stop_ns,
        timeout_ns=written.timeout_ns,
        expect_exit=written.expect_exit,
        stdout=f"{output}.stdout",
        stderr=f"{output}.stderr",
    )


def _ready(written: lab.Ready | None) -> Ready | None:
    match written:
        case lab.Ready(tcp=int(port)):
            return ReadyTcp(port=port)
        case lab.Ready(output=str(regex)):
            return ReadyOutput(regex=regex)
        case lab.Ready(delay_ns=int(delay_ns)):
            return ReadyDelay(delay_ns=delay_ns)
    return None
