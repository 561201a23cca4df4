"""`dilaton --server URL …`: verbs that steer and watch a server's run, and reach its nodes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from dilaton.cli.errors import BadInputError, failing, refusing
from dilaton.cli.output import visible
from dilaton.cli.results.logs import print_logs
from dilaton.cli.results.report import report
from dilaton.cli.runs.remote import PLAIN_NAME, any_at, asking, found_at
from dilaton.cli.runs.suspend import resume, suspend
from dilaton.cli.steering.attach import wants_terminal
from dilaton.cli.steering.capture import check_target, written
from dilaton.cli.steering.cp import copy_of
from dilaton.cli.steering.fault import steer_faults
from dilaton.cli.steering.forward import forward_here, ways_of
from dilaton.cli.steering.link import steer_link
from dilaton.cli.steering.shell import run_here
from dilaton.cli.steering.top import Choice, show
from dilaton.cli.steering.top_there import There
from dilaton.remote.asking import ServerError
from dilaton.remote.control import Control
from dilaton.remote.server import FINAL, RemoteRun, Server
from dilaton.remote.sessions import reached
from dilaton.run.control.errors import ControlError
from dilaton.run.control.terminal_client import SHELL
from dilaton.run.files.directory import RunDirError, take_default
from dilaton.service.request import UNNAMED

PIECE_BYTES = 1 << 16

LOOK_HOST_S = 1.0
"""How often outputs that are followed are looked at."""


def link_there(url: str, run: str, link: str | None, action: str, fields: Sequence[str], at: str | None) -> int:
    """As `steer_link`, of a server's run."""
    with asking():
        return steer_link(run, link, action, fields, at, lambda name: Control(found_at(Server(url), name)))


def faults_there(url: str, run: str, words: Sequence[str]) -> int:
    """As `steer_faults`, of a server's run."""
    with asking():
        return steer_faults(run, words, lambda name: Control(found_at(Server(url), name)))


def suspend_there(url: str, run: str) -> None:
    """As `suspend`, of a server's run."""
    with asking():
        suspend(run, lambda name: Control(found_at(Server(url), name)))


def resume_there(url: str, run: str) -> None:
    """As `resume`, of a server's run."""
    with asking():
        resume(run, lambda name: Control(found_at(Server(url), name)))


@refusing(ControlError)
def top_there(url: str, run: str, choice: Choice, *, once: bool) -> int:
    """As `show_top`, of a server's run."""
    with asking():
        return show(There(found_at(Server(url), run)), choice, once=once)


@refusing(ControlError)
def shell_there(url: str, run: str, node: str, argv: Sequence[str], terminal: bool | None) -> int:
    """As `open_shell`, of a server's run."""
    has_terminal = wants_terminal(terminal)
    with asking():
        return run_here(reached(found_at(Server(url), run)), node, argv or SHELL, has_terminal)


def copy_there(url: str, run: str, source: str, target: str, *, preserve: bool) -> None:
    """As `copy`, of a server's run."""
    with asking():
        copy_of(lambda: reached(found_at(Server(url), run)), source, target, preserve=preserve)


@failing(OSError)
def capture_there(
    url: str,
    run: str,
    place: str,
    pcap_filter: Sequence[str],
    to: str | None,
    snaplen: int,
    count: int | None,
    *,
    wireshark: bool,
) -> int:
    """As `follow`, of a server's run."""
    check_target(to, wireshark=wireshark)
    with asking():
        there = found_at(Server(url), run).capture(place, " ".join(pcap_filter) or None, snaplen, count)
        with there as packets, written(to, wireshark) as stdout, contextlib.suppress(KeyboardInterrupt):
            # What has come is passed on at once, however little it is.
            while piece := packets.read1(PIECE_BYTES):  # type: ignore[attr-defined]
                os.write(stdout, piece)
    return 0


def forward_there(url: str, run: str, texts: Sequence[str]) -> int:
    """As `forward`, to nodes of a server's run."""
    ways = ways_of(texts)
    with asking():
        found = found_at(Server(url), run)
        drawn = found.asker.ask("GET", f"{found.path}/drawing")
        return forward_here(reached(found), [node["name"] for node in drawn["nodes"]], ways, lambda: _over(found))


def vpn_there(url: str, run: str, node: str | None, to: Path | None, listen: str) -> int:
    """As `vpn`, into a server's run."""
    from dilaton.cli.vpn.enter import vpn_here

    with asking():
        found = found_at(Server(url), run)
        nodes = found.asker.ask("GET", f"{found.path}/plan")["nodes"]
        return vpn_here(reached(found), nodes, node, to, listen, lambda: _over(found))


async def _over(run: RemoteRun) -> None:
    """Waits until a run is over; nobody waits for the thread that hears of it."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def wait() -> None:
        with contextlib.suppress(ServerError, RuntimeError):  # the server is gone, or nobody waits any more
            run.wait()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()
    await ended.wait()


def report_there(url: str, run: str, formats: list[str], out: Path | None) -> None:
    """Copies what a server's run has left into a run directory here, and writes its report."""
    with asking():
        left = any_at(Server(url), run)
        name = str(left.show()["name"])
        with refusing(RunDirError):
            path = take_default(name if PLAIN_NAME.fullmatch(name) else UNNAMED)
        left.fetch(path)
    report(path, formats, out)


def logs_there(url: str, run: str, who: str | None, *, follow: bool = False, timeline: bool = False) -> int:
    """As `print_logs`, of a server's run; for a timeline all that it has left so far is copied for that long."""
    if timeline:
        return _timeline_there(url, run, who, follow=follow)
    node, _, process = (who or "*").partition("/")
    pattern = f"nodes/{node}/{process or '*'}.std*"
    with asking(), contextlib.suppress(KeyboardInterrupt):
        found = any_at(Server(url), run)
        printed = _Printed(found, pattern)
        while follow and found.show()["state"] not in FINAL:
            printed.print_new(whole=False)
            time.sleep(LOOK_HOST_S)
        printed.print_new(whole=True)
        if who is not None and not printed.places:
            raise BadInputError(f"{who}: no such node or program has written anything in {found.identity}")
    return 0


def _timeline_there(url: str, run: str, who: str | None, *, follow: bool) -> int:
    with tempfile.TemporaryDirectory(prefix="dilaton-") as place, asking():
        any_at(Server(url), run).fetch(Path(place) / "run")
        return print_logs(str(Path(place) / "run"), who, follow=follow, timeline=True)


class _Printed:
    """Prints what has been added to the outputs of a server's run, lines as they are complete."""

    def __init__(self, run: RemoteRun, pattern: str) -> None:
        self._run, self._pattern = run, pattern
        self._last = ""
        self.places: dict[str, int] = {}
        """Up to which byte each is printed."""

    def print_new(self, *, whole: bool) -> None:
        """Prints what has come since; `whole`: also a last line without its end."""
        for path in sorted(path for path in self._run.files() if path.count("/") == 2):
            if fnmatchcase(path, self._pattern):
                self._print(path, whole)

    def _print(self, path: str, whole: bool) -> None:
        place = self.places.setdefault(path, 0)
        if whole and not place:
            self._name(path)
        with self._run.opened(path) as file:
            passed = 0
            for line in file:
                passed += len(line)
                if passed > place and (whole or line.endswith(b"\n")):
                    self._name(path)
                    print(visible(line[max(0, len(line) - (passed - place)) :].decode(errors="replace").rstrip("\n")))
                    self.places[path] = passed

    def _name(self, path: str) -> None:
        if path != self._last:
            print(visible(f"==> {path.removeprefix('nodes/')} <=="))
            self._last = path
