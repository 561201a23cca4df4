"""Forks workers: `python -m dilaton.server.forks.forker`, in a jail that several share, with a socket as its input.

**Problem.** To read a small lab takes 7 ms of CPU, and to start Python and import what reads it 600 ms.

**Method.** This process has imported all of it, and reads nothing that anybody has written. For each question the
server sends it a socket, and it forks a process that reads the question there, answers, and is gone. That process has
namespaces of its own: of users, so that it traces no other; of processes, so that it ends no other; of mounts, with a
directory for files that others do not see, where all else is read-only. So what one lab does to its reader, no other
meets, though they are in one jail.

**Bounds.** Where namespaces cannot be nested, as where AppArmor keeps whoever is in one from making another, the server
is told so by the first byte, `0` instead of `1`, and starts a new process for each question. Once the server has closed
its end of a question's socket, its process is killed; once the server is gone, all are.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel

from dilaton.host.processes import PR_SET_PDEATHSIG
from dilaton.server.labs import worker
from dilaton.server.workers import LIMITS, OWN, limit_of

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
"""unshare(2)"""

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
"""mount(2)"""

CAPABILITY_VERSION_3 = 0x20080522
"""capget(2)"""

NAME_BYTES_MAX = 200

LAB = "nodes: {a: {}, b: {}}\nlinks: [a -- b]\nrun:\n  - {on: a, name: first, exec: 'true'}\n"
"""Is read once, by which libraries make what they make at their first use."""

_LIBC = ctypes.CDLL(None, use_errno=True)


class Forker:
    """Forks a process for each question; see `serve`."""

    def __init__(self, control: socket.socket) -> None:
        """`control` brings the name of a module and the socket of a question, each."""
        self._control = control
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._children: dict[int, tuple[int, int]] = {}
        """By the pidfd of each: its number, and its socket, which it has open, too."""

    def serve(self) -> None:
        """Forks until the server is gone."""
        while True:
            for fd, _ in self._poll.poll():
                if fd in self._children:
                    self._reap(fd)
                elif fd != self._control.fileno():
                    self._kill(fd)
                elif not self._fork():
                    return

    def _fork(self) -> bool:
        """Forks for the next question; whether there was one."""
        said, sockets, _, _ = socket.recv_fds(self._control, NAME_BYTES_MAX, 1)
        if not said:
            return False
        module = importlib.import_module(said.decode())
        pid = os.fork()
        if pid == 0:
            self._control.close()
            for pidfd, (_, other) in self._children.items():
                os.close(pidfd)
                os.close(other)
            _apart(lambda: _answer(module.answer, sockets[0]))
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = pid, sockets[0]
        self._poll.register(pidfd, select.POLLIN)
        # Only once both ends have been shut down: that the server has asked everything is no reason.
        self._poll.register(sockets[0], 0)
        return True

    def _reap(self, pidfd: int) -> None:
        """Notes that a process has ended, which the server hears by the end of its socket."""
        pid, answers = self._children.pop(pidfd)
        os.waitpid(pid, 0)
        for fd in (pidfd, answers):
            with contextlib.suppress(KeyError):
                self._poll.unregister(fd)
            os.close(fd)

    def _kill(self, answers: int) -> None:
        """Ends the process of a question that nobody asks any more."""
        self._poll.unregister(answers)
        for pid, other in self._children.values():
            if other == answers:
                os.kill(pid, signal.SIGKILL)


def _apart(work: Callable[[], None]) -> None:
    """Does something in a process with namespaces of its own, and ends this one with it: 0 where all went well."""
    status = 1
    try:
        uid, gid = os.getuid(), os.getgid()
        _checked(_LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC))
        for name, words in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path(f"/proc/self/{name}").write_text(words)
        lives, life = os.pipe()
        if pid := os.fork():
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        else:
            # Only what is in the new namespace of processes: a process that has made one is not.
            os.close(life)
            _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            # Who has ended before that sends no signal any more, and no number tells of one outside.
            if select.select([lives], [], [], 0)[0]:
                os._exit(1)
            _mount("tmpfs", OWN, "tmpfs", MS_NOSUID | MS_NODEV)
            # Linux lets nobody mount another one of which parts are covered, as bubblewrap's are.
            _mount("proc", "/proc", "proc", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
            # With which it could undo that.
            _checked(_LIBC.capset((ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()))
            os.environ["TMPDIR"] = tempfile.tempdir = OWN
            os.chdir(OWN)
            work()
            status = 0
    finally:
        os._exit(abs(status))


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    _checked(_LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, None))


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _answer(answer: Callable[[object], object], fd: int) -> None:
    """Answers the question of a socket, with limits of CPU and memory; if that breaks, by a line that says why."""
    for what in LIMITS:
        resource.setrlimit(what, (limit_of(what), limit_of(what)))
    with socket.socket(fileno=fd) as asked, asked.makefile("rwb") as stream:
        try:
            said = json.dumps(answer(json.load(stream)))
        except Exception as error:  # whatever it is, the server says that the lab cannot be read
            said = f"{type(error).__name__}: {error}"
        stream.write(said.encode())


def _can_fork_apart() -> bool:
    """Whether processes can be kept apart here."""
    if (pid := os.fork()) == 0:
        _apart(lambda: None)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _build_models(base: type[BaseModel]) -> None:
    """Has each model be built, which pydantic does at its first use where it may."""
    for model in base.__subclasses__():
        model.model_rebuild()
        _build_models(model)


def main() -> None:
    """Serves the socket that is the standard input."""
    control = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    _build_models(BaseModel)
    worker.answer({"text": LAB, "overrides": {}, "is_drawn": False, "machines": 1})
    # What is there is looked through no more, so that forked processes share its memory.
    gc.freeze()
    control.send(b"1" if _can_fork_apart() else b"0")
    Forker(control).serve()


if __name__ == "__main__":
    main()
