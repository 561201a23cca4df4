"""What a forked worker does in tests: whatever a lab might make its reader do."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from dilaton.server.workers import OWN


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Does one thing, and says who did it."""
    pid = int(Path("/proc/self").readlink().name)
    return {"pid": pid, "said": DOES[asked["do"]](asked)}


def _wait(asked: dict[str, Any]) -> str:
    """Goes on, with a file of its own, until the file appears that the test makes."""
    Path("mine").write_text("mine")
    Path(OWN, "also").touch()
    while not Path(asked["until"]).exists():
        time.sleep(0.01)
    return Path("mine").read_text()


def _attack(_: dict[str, Any]) -> dict[str, Any]:
    """Tries to meet the others that are there: what worked, and which there are."""
    myself = Path("/proc/self").readlink().name
    others = [one.name for one in Path("/proc").iterdir() if one.name.isdigit() and one.name != myself]
    worked = [str(one) for one in Path(OWN).iterdir()]
    for path in ("/file", "/tmp/file", "/dev/file", "/dev/shm/file"):  # noqa: S108
        worked += _tried(path, lambda path=path: Path(path).touch())
    for pid in others:
        for name in ("mem", "environ", "root/", "fd/0", "cwd/mine"):
            worked += _tried(f"{pid}/{name}", lambda path=f"/proc/{pid}/{name}": os.close(os.open(path, os.O_RDONLY)))
        worked += _tried(f"{pid}/oom", lambda pid=pid: Path(f"/proc/{pid}/oom_score_adj").write_text("1000"))
        # Process 1 is itself.
        worked += _tried(f"kill {pid}", lambda pid=pid: os.kill(int(pid), 9)) if int(pid) > 1 else []
    return {"worked": worked, "others": others}


def _tried(what: str, does: Any) -> list[str]:
    try:
        does()
    except OSError:
        return []
    return [what]


def _memory(_: dict[str, Any]) -> int:
    return len(bytearray(8 << 30))


DOES: dict[str, Any] = {
    "nothing": lambda _: None,
    "wait": _wait,
    "attack": _attack,
    "memory": _memory,
    "end": lambda _: os._exit(0),
}
