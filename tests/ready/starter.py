"""A process that has imported the command line and is forked for each command: `python starter.py SOCKET`.

To import it takes most of what a small command costs. A request is one message: arguments, environment and working
directory, with the three files that the command is to have; the answer is the command's process id. The command is a
child of who asks (CLONE_PARENT), as if they had started it: they wait for it, and it sees them as its parent.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import threading
from typing import Any, NoReturn

CLONE_PARENT = 0x8000
SYS_CLONE = 56
REQUEST_BYTES_MAX = 1 << 20
LAB = "{name: ready, nodes: {a: {}, b: {}}, links: [a -- b], run: [{on: a, exec: 'true'}]}"


def import_commands() -> None:
    """Imports what commands use, builds their models, and stays one thread, without which nothing can be forked."""
    # Libraries for sums of tables would start threads.
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
    for place in ("dilaton.cli", "dilaton.service", "dilaton.run", "dilaton.report"):
        for module in pkgutil.walk_packages(importlib.import_module(place).__path__, f"{place}."):
            if "__main__" not in module.name:
                importlib.import_module(module.name)
    from pydantic import BaseModel

    from dilaton.lab.loader import loads
    from dilaton.plan.compile import compile as compile_plan

    compile_plan(loads(LAB, "lab.yaml"))
    models = list(BaseModel.__subclasses__())
    while models:
        model = models.pop()
        models += model.__subclasses__()
        if model.__module__.startswith("dilaton."):
            model.model_rebuild()
    gc.collect()
    gc.freeze()
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"what was imported started {len(threads) - 1} threads"


def fork_for_parent() -> int:
    """As fork(2), but the new process is a child of this one's parent."""
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    pid = int(ctypes.PyDLL(None).syscall(SYS_CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def next_command(connection: socket.socket) -> dict[str, Any]:
    """Forks for each request, and returns in the forks alone, each with its request."""
    while True:
        message, files, _, _ = socket.recv_fds(connection, REQUEST_BYTES_MAX, 3)
        if not message:
            os._exit(0)
        pid = fork_for_parent()
        if pid == 0:
            connection.close()
            for place, file in enumerate(files):
                os.dup2(file, place)
                os.close(file)
            request: dict[str, Any] = json.loads(message)
            return request
        for file in files:
            os.close(file)
        connection.send(str(pid).encode())


def open_streams() -> None:
    """Opens the streams anew, as Python does when it starts: what they can do depends on their files.

    They have buffers also where PYTHONUNBUFFERED is set, so that what is not flushed in time shows there, too.
    """
    sys.stdin = os.fdopen(0, encoding=sys.stdin.encoding, errors=sys.stdin.errors, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding=sys.stderr.encoding, errors=sys.stderr.errors, closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def leave(status: int | str | None) -> NoReturn:
    """Ends as Python does, but for the objects: to take those of so many modules apart would take longest."""
    assert not isinstance(status, str)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status or 0)


def main() -> None:
    """Waits for requests, with Ctrl-C blocked; what follows happens in the process of a command."""
    import_commands()
    request = next_command(socket.socket(fileno=int(sys.argv[1])))
    open_streams()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    os.chdir(request["directory"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = request["directory"]
    sys.argv = ["dilaton", *request["arguments"]]
    try:
        runpy.run_module("dilaton", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        leave(ended.code)


if __name__ == "__main__":
    main()
