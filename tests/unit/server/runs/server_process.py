"""A server in a process of its own, which can be killed; its runs are on a machine without a kernel."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dilaton.server.settings import Settings
from tests.conftest import ROOT
from tests.unit.server.serving import Client


@dataclass
class Process:
    """A server in a process of its own, and its owner, who is logged in there."""

    process: subprocess.Popen[str]
    client: Client

    def kill(self) -> None:
        """Ends it as it is."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def process(directory: Path, *options: object) -> Iterator[Process]:
    """A server whose data are in `directory`, with options of `tests.stub_server`; it is killed at the end.

    As a service it has a session of its own.
    """
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"}
    command = [sys.executable, "-P", "-m", "tests.stub_server", str(directory), *map(str, options)]
    piped = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=piped, text=True, start_new_session=True) as running:
        assert running.stdout
        try:
            _, link = running.stdout.readline(), running.stdout.readline()
            url, _, once = link.strip().rpartition(": ")[2].partition("/login?once=")
            settings = Settings(directory, port=int(url.rpartition(":")[2]))
            cookie = let_in(settings, once)
            yield Process(running, Client(settings, {"Cookie": cookie, "Origin": settings.origin}))
        finally:
            running.kill()


def let_in(settings: Settings, once: str) -> str:
    """The cookie of whom a link lets in."""
    answer = Client(settings).ask("POST", "/api/v1/session", {"once": once})
    assert answer.status == 204, answer
    return answer.headers["set-cookie"].partition(";")[0]
