"""Unmodified programs in virtual time: languages, servers, daemons, debuggers, and what tries the bounds of a guest.

Each is in `programs/`, and prints what it found."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PATIENCE_HOST_S, PYTHON, dilaton

SOURCES = Path(__file__).parent / "programs"

PROGRAMS = {
    "Python's asyncio": ([str(PYTHON), "asyncio-echo.py"], "190 100\n"),
    "a static Go binary": (["./echo"], "40000 bytes, 5\n"),
    "OpenJDK": (["sh", "java.sh"], "dilaton, PrivateKeyEntry\n"),
    "Node.js": (["node", "http.mjs"], "190 100\n"),
    "nginx, curl and aria2c": (["sh", "web.sh"], "curl: the same\naria2c: the same\n"),
    "MariaDB": (["sh", "mariadb.sh"], "6\t1\n"),
    "Redis": (["sh", "redis.sh"], "OK\n6\nOK\n1\n0\n500\n"),
    "BIRD and FRR": (["sh", "ospf.sh"], "via 10.0.0.2\nvia 10.0.0.1\n"),
    "clocks, counters and children": (
        ["./bounds"],
        "spun for 50 ms\nticks in a second: as on a processor\n2000 children\n",
    ),
    "iptables, which loads modules by itself": (
        ["sh", "-c", "iptables-legacy -t nat -A POSTROUTING -j MASQUERADE && iptables-legacy -t nat -S POSTROUTING"],
        "-P POSTROUTING ACCEPT\n-A POSTROUTING -j MASQUERADE\n",
    ),
    "gdb and strace": (
        ["sh", "debuggers.sh"],
        "step to +2\nstep to +3\nstep to +6\nstep to +7\n$1 = 21\nValue returned is $2 = 42\nexit_group(42)\n",
    ),
}
"""By what they are: the command, and what it prints."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the programs, compiled where that is needed."""
    directory = tmp_path_factory.mktemp("programs")
    shutil.copytree(SOURCES, directory, dirs_exist_ok=True)
    for name in ("bounds", "answer"):
        subprocess.run(["cc", "-g", "-o", name, f"{name}.c"], cwd=directory, check=True)
    go = shutil.which("go") or "/usr/local/go/bin/go"
    subprocess.run([go, "build", "-o", "echo", "echo.go"], cwd=directory, check=True, env=_go_environment(directory))
    return directory


def _go_environment(directory: Path) -> dict[str, str]:
    """Static, without a network; and with a place to keep what was compiled where the user has none."""
    cache = {} if os.access(Path.home(), os.W_OK) else {"GOCACHE": str(directory / "cache")}
    return os.environ | {"CGO_ENABLED": "0", "GOPROXY": "off", "GOFLAGS": "-mod=mod"} | cache


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_do_what_they_do_on_a_machine(program: str, programs: Path) -> None:
    if program.startswith("iptables") and dilaton("exec", "--", "modprobe", "-n", "-q", "ip_tables").returncode:
        pytest.skip("this kernel has no module ip_tables")
    command, shown = PROGRAMS[program]
    given = {"cwd": programs, "stdin": subprocess.DEVNULL, "timeout": PATIENCE_HOST_S}
    done = dilaton("exec", "--tdf", "10", "--", *command, **given)
    assert (done.stdout, done.returncode) == (shown, 0)
