"""Debian's PostgreSQL for tests: a cluster of its own on a socket, started, stopped, and gone afterwards."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

USER = "postgres"


def programs() -> Path | None:
    """Where its programs are, of the newest version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@dataclass
class Cluster:
    """A cluster."""

    bin: Path
    directory: Path

    @property
    def url(self) -> str:
        """Of its database."""
        return f"postgresql://{USER}@/{USER}?host={self.directory}"

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        options = f"-c listen_addresses='' -c unix_socket_directories={self.directory} -c fsync=off"
        self._run("pg_ctl", "--wait", "-D", "data", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        """Stops it at once: who is connected is cut off."""
        self._run("pg_ctl", "--wait", "-D", "data", "-m", "immediate", "stop")

    def make(self) -> None:
        """Makes its files."""
        self._run("initdb", "-D", "data", "-U", USER, "--auth=trust", "--no-sync")

    def _run(self, program: str, *arguments: str) -> None:
        # It does not run as root.
        become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*become, str(self.bin / program), *arguments],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster that goes on."""
    if (found := programs()) is None:
        pytest.skip("Debian's package postgresql is not installed")
    directory = Path(tempfile.mkdtemp(prefix="postgresql-of-tests-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(directory, pwd.getpwnam(USER).pw_uid)
        made = Cluster(found, directory)
        made.make()
        made.start()
        try:
            yield made
        finally:
            with contextlib.suppress(AssertionError):  # a test has stopped it
                made.stop()
    finally:
        shutil.rmtree(directory)
