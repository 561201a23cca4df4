"""What runs, when and how: the processes of a plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dilaton.lab import model as lab
from dilaton.lab.images.find import Image
from dilaton.lab.model import READY_TIMEOUT_NS
from dilaton.plan.course.faults import awaited
from dilaton.plan.model import Process, Ready, ReadyDelay, ReadyOutput, ReadyTcp, Restart

RESTART_RESET_NS = 10 * 10**9
"""A process that has lived so long is started again as after its first end; as Docker does."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment(node: str) -> dict[str, str]:
    """The environment that every process of a node has."""
    return {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "HOSTNAME": node}


def process(
    written: lab.Process, known: Collection[str], files: Sequence[str] = (), image: Image | None = None
) -> Process:
    """The process of a plan that a lab's process means.

    Args:
        written: What the lab says.
        known: The names of all that it can wait for.
        files: The directories with the lab's files.
        image: Of its node, which says what the lab does not: whose process it is, where it starts, and variables.
    """
    output = f"nodes/{written.on}/{written.name}"
    return Process(
        name=written.name,
        node=written.on,
        argv=written.argv,
        env=environment(written.on) | (dict(image.env) if image else {}) | written.env,
        cwd=image.cwd if image and "cwd" not in written.model_fields_set else home(written, files),
        user=image.user if image and "user" not in written.model_fields_set else written.user,
        stdin=written.stdin,
        start_ns=written.start_ns,
        after=[awaited(text, known) for text in written.after],
        ready=_ready(written.ready),
        ready_timeout_ns=written.ready.timeout_ns if written.ready else READY_TIMEOUT_NS,
        background=written.background,
        stop_ns=written.stop_ns,
        timeout_ns=written.timeout_ns,
        expect_exit=written.expect_exit,
        restart=_restart(written.restart),
        boot=written.boots,
        stdout=f"{output}.stdout",
        stderr=f"{output}.stderr",
    )


def home(written: lab.Process, files: Sequence[str]) -> str:
    """The directory in which a process starts: the one it names, else that of the lab's files, if it has any."""
    return files[0] if files and "cwd" not in written.model_fields_set else written.cwd


def _restart(written: lab.Restart | None) -> Restart | None:
    if written is None:
        return None
    return Restart(
        on_failure=written.when == "on-failure",
        delay_ns=written.delay_ns,
        delay_max_ns=max(written.delay_ns, written.max_ns),
        reset_ns=RESTART_RESET_NS,
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
