"""Ray on this machine, started and ended by us: a cluster of one's own, or this machine's part of one.

Ray's `ray stop` ends every Ray on a machine, whoever's it is, and `ray start` leaves a dozen processes behind. So ours
has a **keeper** (`keeper.py`), a process that all of them are below, whatever becomes of their parents: they end with
it, and it ends with the first of them. It holds a lock as long as it lives, so that nobody has to believe a number in a
file.

Who joins needs the cluster's token, without which Ray does what anybody asks who reaches its ports, and it listens at
all addresses. It is in a file that only its owner can read, and in no argument.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import ipaddress
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from dilaton.cluster.engines.processes import environment
from dilaton.cluster.files import place
from dilaton.host.errors import GuestError

PORT = 6379
"""Where a head listens, as is usual for Ray."""

TOKEN_BYTES = 32

END_HOST_S_MAX = 20.0


def files(token: str) -> Path:
    """Where Ray has its files on each machine of a cluster: a name that nobody guesses, and short, as of sockets."""
    return Path(tempfile.gettempdir()) / f"dilaton-ray-{hashlib.sha256(token.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Part:
    """What is to be kept on this machine.

    Attributes:
        head: Where the head of the cluster listens, as 192.0.2.1:6379.
        address: Of this machine, by which others reach it.
        is_head: Whether this machine is the head.
        machines: How many machines of the cluster this one is.
    """

    head: str
    address: str
    is_head: bool
    machines: int


def directory() -> Path:
    """Where it is noted what this user has of Ray on this machine."""
    return place.parent().with_name("cluster")


def variables() -> dict[str, str]:
    """What Ray is told in its environment to find our cluster; nothing where there is none, or another is named."""
    if "RAY_ADDRESS" in os.environ or (part := kept()) is None:
        return {}
    return {"RAY_ADDRESS": part.head} | token_variables()


def token_variables() -> dict[str, str]:
    """What has Ray ask for the token, and know it."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(directory() / "token")}


def kept() -> Part | None:
    """What is kept on this machine; None: nothing."""
    try:
        with (directory() / "keeper").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
    except FileNotFoundError:
        return None
    except BlockingIOError:
        with contextlib.suppress(ValueError, TypeError, OSError):
            return Part(**json.loads((directory() / "part.json").read_text()))
        return None


def start(address: str, machines: int, port: int = PORT) -> Part:
    """Starts a cluster whose head is this machine.

    Raises:
        ValueError: That is no address.
        GuestError: There is one already, or Ray does not start.
    """
    ip = ipaddress.ip_address(address)
    made = secrets.token_hex(TOKEN_BYTES)
    return _keep(
        Part(f"[{ip}]:{port}" if ip.version == 6 else f"{ip}:{port}", str(ip), is_head=True, machines=machines), made
    )


def join(head: str, token: str, address: str, machines: int) -> Part:
    """Has this machine join a cluster.

    Raises:
        ValueError: That is no address, or no token.
        GuestError: It has joined one already, or Ray does not start.
    """
    token = token.strip()
    if len(token) != 2 * TOKEN_BYTES or not all(letter in "0123456789abcdef" for letter in token):
        raise ValueError("that is no token of a cluster; dilaton cluster start says where it is")
    return _keep(Part(head, str(ipaddress.ip_address(address)), is_head=False, machines=machines), token)


def _keep(part: Part, token: str) -> Part:
    if (there := kept()) is not None:
        raise GuestError(f"this machine is in a cluster already, that of {there.head}; dilaton cluster stop ends that")
    noted = directory()
    noted.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(noted / "token", token)
    _write(noted / "part.json", json.dumps(asdict(part)))
    with (noted / "keeper.log").open("wb") as log, (noted / "keeper").open("w") as lock:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "dilaton.cluster.keeper", str(lock.fileno())],
            env=environment() | token_variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=[lock.fileno()],
            start_new_session=True,
        )
    assert keeper.stdout is not None
    with keeper.stdout:
        said = keeper.stdout.readline().decode().strip()
    if said != "ready":
        keeper.wait()
        raise GuestError(f"Ray does not start: {said or 'see ' + str(noted / 'keeper.log')}")
    return part


def _write(file: Path, text: str) -> None:
    """Writes a file that only its owner can read."""
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
        made.write(text)


def stop() -> bool:
    """Ends what is kept on this machine; False: nothing was.

    Raises:
        GuestError: It does not end.
    """
    noted, was_kept = directory(), kept() is not None
    if was_kept:
        _end_keeper(noted)
    for name in ("token", "part.json", "keeper.pid", "keeper.log", "keeper"):
        (noted / name).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        noted.rmdir()
    return was_kept


def _end_keeper(noted: Path) -> None:
    with (noted / "keeper").open() as file:
        os.kill(int((noted / "keeper.pid").read_text()), signal.SIGTERM)
        end = time.monotonic() + END_HOST_S_MAX
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > end:
                    raise GuestError(f"Ray does not end; see {noted / 'keeper.log'}") from error
                time.sleep(0.05)
