"""`dilaton serve`: opens the data, listens, prints the link, and serves until it is told to end. Runs go on then."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import uvicorn
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from uvicorn.config import LOGGING_CONFIG

from dilaton.host.processes import hand_down_no_capabilities
from dilaton.lab.errors import LabError
from dilaton.measure.numbers import counted
from dilaton.server import logs
from dilaton.server.access.callers import make_person
from dilaton.server.app import made, opened
from dilaton.server.backup.copying import BackupError, back_up, restore
from dilaton.server.database.store import GONE, Store
from dilaton.server.database.tables import GrantRow, Person
from dilaton.server.priority import go_first
from dilaton.server.runs.user_ids import refuse_hopeless
from dilaton.server.settings import MESSAGE_BYTES_MAX, Settings, SettingsError
from dilaton.server.state import State

OWNER = "owner"
"""Whose a server is that has one person."""

BAD_INPUT = 2
"""Exit status."""

GRACE_HOST_S = 3
"""What open streams may delay the end by."""


def serve(settings: Settings) -> int:
    """Serves; returns the exit status."""
    try:
        settings.check()
    except SettingsError as error:
        return _refuse(str(error))
    if settings.log == "json":
        logs.use_json()
    # Before anything is made: what others on this machine are not to read.
    os.umask(0o077)
    # By which it may go first and listen on port 443.
    go_first()
    hand_down_no_capabilities()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_alone(settings.directory))
        except BlockingIOError:
            return _refuse(f"{settings.directory}: another server uses it; end that, or name another --data")
        try:
            listening = stack.enter_context(listening_on(settings))
        except OSError as error:
            return _refuse(f"--port: {settings.port}: cannot listen on {settings.host}: {error.strerror}")
        settings = replace(settings, port=listening.getsockname()[1])
        try:
            state = opened(settings)
            if settings.run_as is not None:
                refuse_hopeless(settings.run_as, settings.directory)
        except LabError as error:
            return _refuse(str(error))
        except ValueError as error:
            return _refuse(f"run_as: {error}")
        except GONE as error:
            return _refuse(f"database: cannot be opened: {str(error.orig).strip()}")
        make_owner(state)
        once = state.one_time.make(OWNER)
        print(f"data: {settings.directory}\nto log in, once: {settings.origin}/login?once={once}", flush=True)
        # By a KeyboardInterrupt uvicorn says, once it has ended in good order, what has ended it.
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(configured(state)).run(sockets=[listening])
    return 0


def keep_copy(settings: Settings, to: Path | None, of: Path | None) -> int:
    """Makes a backup, of a server that may go on, or puts one back into a new one; returns the exit status.

    Args:
        settings: How the server is set up.
        to: The file that gets the backup; None: none is made.
        of: The backup that is put back; None: none is.
    """
    os.umask(0o077)
    try:
        if to is not None:
            if not settings.postgresql and not settings.database.is_file():
                return _refuse(f"{settings.directory}: there is no server")
            store = Store(settings.database, settings.postgresql, upgraded=False)
            with contextlib.closing(store):
                copied = back_up(store, settings, to)
            for what in copied.left_out:
                print(f"dilaton: not in {to}: {what}", file=sys.stderr)
            kept = counted(copied.saved, "saved lab"), counted(copied.images, "image")
            print(f"{to}: with the files of {counted(copied.runs, 'run')}, {kept[0]} and {kept[1]}")
        elif of is not None:
            with _alone(settings.directory), contextlib.closing(Store(settings.database, settings.postgresql)) as store:
                restore(store, settings, of)
            print(f"{settings.directory}: as it was when {of} was made")
    except BlockingIOError:
        return _refuse(f"{settings.directory}: a server uses it; end that, or name another --data")
    except BackupError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename or to or of}: {error.strerror or error}")
    except SQLAlchemyError as error:
        return _refuse(f"database: cannot be read or written: {str(error).splitlines()[0]}")
    return 0


def configured(state: State) -> uvicorn.Config:
    """How the application is served. The log of requests would have the link in it."""
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    settings = state.settings
    return uvicorn.Config(
        made(state),
        log_config=None if settings.log == "json" else LOGGING_CONFIG,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        ssl_certfile=settings.certificate,
        ssl_keyfile=None if settings.key is None else str(settings.key),
        ws_max_size=MESSAGE_BYTES_MAX,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=GRACE_HOST_S,
    )


def make_owner(state: State) -> None:
    """Makes the person whose the server is, unless there is one."""
    with state.store.writing() as session:
        if session.scalar(select(Person).where(Person.name == OWNER)) is None:
            make_person(session, OWNER)
            session.add(GrantRow(person=OWNER, path="/", role="administrator", denies=False, propagates=True))


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's says what is not meant: a handshake that is refused with an answer is none, and an
    answer of a node's that breaks off is its own affair."""
    return not record.getMessage().startswith("ASGI callable returned without completing")


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keeps other servers from these data as long as the context lasts.

    Raises:
        BlockingIOError: one uses them.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (directory / "server.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextlib.contextmanager
def listening_on(settings: Settings) -> Iterator[socket.socket]:
    """A socket that listens where the settings say.

    Raises:
        OSError: that cannot be.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        # A server that was killed has left connections that end by themselves.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        # Who has the link may come before the application is up, and waits then.
        listening.listen()
        yield listening


def _refuse(why: str) -> int:
    print(f"dilaton: {why}", file=sys.stderr)
    return BAD_INPUT
