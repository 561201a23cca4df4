"""Control sockets: how they are called, who is at their ends, and how long anybody waits there.

**Problem.** The name of an abstract socket belongs to nobody: any user of the machine may listen on one that is free,
and connect to one that is not. If a run's name followed from its directory, another user could listen on it before the
run does: the run could not begin, and its user's commands would wait for ever, be told of runs that there are not, and
hand over what is typed into a shell.

**Why not a file.** A socket in a directory of the user's own (`XDG_RUNTIME_DIR`) is out of reach of others. But its
file outlives a killed process, whoever cleans up may remove that of a run that has just begun, and not everybody has
such a directory.

**Rule.** A name ends in digits that nobody can guess, so nobody can take it first. Clients look the name up in the
kernel's table, by its part that follows from the run directory. Both ends ask the kernel who the other one is, and say
nothing to a stranger: a run hears its own user and root, a client only its own user's runs, and those that it has
given a user of their own, as a server does. Root steers any other user's run by becoming that user (`sudo -u`), which
nobody does unknowingly. And every wait has a limit. A run that works on an
answer for long, such as to `clock until`, shows that it is alive by empty lines, so that only silence is limited.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import re
import secrets
import socket
import stat
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path

from dilaton.host.processes import is_stopped
from dilaton.run.control.errors import ControlError

REPLY_BYTES_MAX = 1 << 24

CONNECT_HOST_S = 5.0
"""How long a client tries while a run's queue of connections is full, as other users may keep it."""

SILENCE_HOST_S = 60.0
"""How long a client waits for a line of a run. It is far more than a busy machine needs."""

SIGN_OF_LIFE_HOST_S = 2.0
"""How often a run that works on an answer says so."""

SIGN_OF_LIFE = b"\n"

LOOK_HOST_S = 0.5
"""How often a client that waits looks whether somebody has stopped the run's process."""

PEER = struct.Struct("=iII")
"""What SO_PEERCRED tells."""

PEEK_BYTES = 1 << 16


@dataclass(frozen=True)
class Peer:
    """Who is at the other end of a connection: who has called listen(2), or connect(2)."""

    pid: int
    uid: int


def peer(connection: socket.socket) -> Peer:
    """Who is at the other end, as the kernel knows it."""
    pid, uid, _ = PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
    return Peer(pid, uid)


def is_heard(connection: socket.socket) -> bool:
    """Whether a run does what is asked on a connection: its own user asks, or root."""
    return peer(connection).uid in (0, os.geteuid())


def name_for(run_dir: Path) -> str:
    """A new name for the socket of a run, without the leading NUL byte: no two are equal."""
    return f"{_stem(run_dir, str(os.geteuid()))}-{secrets.token_hex(16)}"


def _stem(run_dir: Path, uid: str) -> str:
    digest = hashlib.sha256(os.fsencode(run_dir.resolve())).hexdigest()
    return f"{_prefix(uid)}{digest[:16]}"


def _prefix(uid: str) -> str:
    return f"dilaton-{uid}-"


def _owner(run_dir: Path) -> int:
    """Whose the run in a directory would have to be: ours, or that user's to whom we have given the directory.

    A directory that we have given away is still our group's, and in one where nobody else could have put it.
    """
    with contextlib.suppress(OSError):
        place = run_dir.resolve()
        given, above = place.stat(), place.parent.stat()
        is_ours_alone = above.st_uid == os.geteuid() and not above.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if is_ours_alone and given.st_gid == os.getegid():
            return given.st_uid
    return os.geteuid()


def _names(stem: str) -> set[str]:
    """The names in the kernel's table that are those of a stem, whoever listens there."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
        return set(re.findall(rf"@({stem}-[0-9a-f]{{32}})$", table.read(), re.MULTILINE))


@dataclass
class Found:
    """What is behind names of runs.

    Attributes:
        runs: Connections to runs of this user.
        strangers: The other users who listen there.
        full: How many take no connection, so that nobody knows whose they are.
    """

    runs: list[Line] = field(default_factory=list)
    strangers: set[int] = field(default_factory=set)
    full: int = 0

    def close(self) -> None:
        """Closes the connections."""
        for line in self.runs:
            line.close()


def connect(run_dir: Path) -> Line:
    """A connection to the run in a directory.

    Raises:
        ControlError: no run of this user goes on there.
    """
    owner = _owner(run_dir)
    # A run that is not ours says its number as its own user has it, which we may know by another, as in a jail.
    stem = _stem(run_dir, str(owner) if owner == os.geteuid() else "[0-9]+")
    found = _connect(stem, owner, CONNECT_HOST_S, is_one_enough=True)
    if not found.runs:
        raise ControlError(f"no run is going on there{_why_not(run_dir, owner, found)}", run_dir=run_dir)
    line, *others = found.runs
    for other in others:
        other.close()
    return line


def connect_all() -> Found:
    """Connections to all runs of this user."""
    us = os.geteuid()
    return _connect(f"{_prefix(str(us))}[0-9a-f]{{16}}", us, LOOK_HOST_S, is_one_enough=False)


def _connect(stem: str, uid: int, patience_s: float, *, is_one_enough: bool) -> Found:
    """Connections to those names of a stem behind which runs of a user are.

    Names whose queue of connections is full are tried again for `patience_s`.
    """
    found = Found()
    # Rows come and go while the table is read, and one beside them may be left out: it is read once more.
    names = _names(stem) or _names(stem)
    deadline = time.monotonic() + patience_s
    while True:
        names = {name for name in names if not _try(name, uid, found)}
        if not names or (found.runs and is_one_enough) or time.monotonic() > deadline:
            found.full = len(names)
            return found
        time.sleep(0.01)


def _try(name: str, uid: int, found: Found) -> bool:
    """Connects to a name, if a run of a user is behind it; returns whether that is settled."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        connection.connect("\0" + name)
        owner = peer(connection)
    except OSError as error:
        connection.close()
        return not isinstance(error, BlockingIOError)
    if owner.uid != uid:
        connection.close()
        found.strangers.add(owner.uid)
        return True
    found.runs.append(Line(connection, owner.pid))
    return True


def _why_not(run_dir: Path, uid: int, found: Found) -> str:
    """What else there is to say of a run that is not found."""
    if found.full:
        return " that takes a connection; somebody listens in its name, and keeps callers waiting"
    if found.strangers:
        return f"; {', '.join(map(_user, sorted(found.strangers)))} listens in its name, and is told nothing"
    with contextlib.suppress(OSError):
        owner = run_dir.stat().st_uid
        if owner != uid:
            return f" that is yours; the directory is of {_user(owner)}, who alone can steer a run there"
    return ""


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


class Line:
    """A client's connection to a run, with limits to every wait."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        """Takes a connection whose other end is the process `pid`."""
        self.connection = connection
        self.pid = pid

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()

    def send(self, line: bytes) -> None:
        """Sends a line.

        Raises:
            OSError: the run has ended.
            ControlError: it does not take it.
        """
        self.connection.settimeout(SILENCE_HOST_S)
        try:
            self.connection.sendall(line)
        except TimeoutError:
            raise self._silent(SILENCE_HOST_S) from None

    def receive(self, deadline: float | None = None) -> bytes:
        """The next line that says something, of which nothing behind it is taken; what there is when the run has ended.

        Args:
            deadline: When to give up, of `time.monotonic`; None: after so much silence.

        Raises:
            OSError: the run has ended.
            ControlError: it is stopped, silent, or says more than any answer.
        """
        while True:
            line = self._line(time.monotonic() + SILENCE_HOST_S if deadline is None else deadline)
            if line != SIGN_OF_LIFE:
                return line

    def _line(self, deadline: float) -> bytes:
        """The next line, an empty one too."""
        line = bytearray()
        began = time.monotonic()
        while len(line) <= REPLY_BYTES_MAX:
            left = deadline - time.monotonic()
            # What has come is read even when it is late.
            self.connection.settimeout(min(max(left, 0.001), LOOK_HOST_S))
            try:
                there = self.connection.recv(PEEK_BYTES, socket.MSG_PEEK)
            except TimeoutError:
                there = None
            if there is not None:
                end = there.find(b"\n") + 1
                line += self.connection.recv(end or len(there))
                if end or not there:
                    return bytes(line)
            elif is_stopped(self.pid):
                raise ControlError(f"process {self.pid} of the run is stopped, as by Ctrl-Z, and answers nobody")
            if left <= 0:
                raise self._silent(deadline - began)
        raise ControlError(f"process {self.pid} of the run says more than the {REPLY_BYTES_MAX} bytes of any answer")

    def wait_for_end(self) -> None:
        """Waits until the other end is closed, which is when its process is gone at the latest."""
        self.connection.settimeout(None)
        with contextlib.suppress(OSError):
            while self.connection.recv(PEEK_BYTES):
                pass

    def _silent(self, waited_s: float) -> ControlError:
        return ControlError(f"process {self.pid} of the run has not answered within {waited_s:.0f} s")
