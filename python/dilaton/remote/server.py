"""A server, and its runs."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

from dilaton.remote.answers import (
    Compared,
    FileShown,
    ImageShown,
    LabShown,
    RepeatedShown,
    RunShown,
    SavedLab,
    SavedLabs,
    StatusShown,
    WholeSweep,
)
from dilaton.remote.asking import Asker, ServerError, lines
from dilaton.run.control.actions import CLOCK_ACTIONS
from dilaton.run.control.answers import Clock, PutAway
from dilaton.run.files.directory import RECORD_FILE, create_file

FINAL = ("finished", "failed", "aborted", "refused", "cancelled")
"""States of a run in which nothing more becomes of it."""

AGAIN_HOST_S = 1.0
AGAIN_MAX = 120
"""How often, and after which time, one comes again who finds no server, as while it is upgraded."""

PIECE_BYTES = 1 << 16

Progress = Callable[[str, int], None]
"""Is told what is being done, and of how many bytes."""

TRANSIENT = (0, 502, 503)
"""Of answers that say nothing of what was asked: none came, or none could be given now."""


def _untold(_what: str, _size_bytes: int) -> None:
    """For whom no progress is told."""


class Server:
    """A server that one may ask; see `dilaton.remote`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """Asks nothing yet.

        Args:
            url: As https://lab.example.org; http:// on loopback alone.
            token: One's own; None: that of the variable DILATON_TOKEN.

        Raises:
            ServerError: the URL is none, or there is no token.
        """
        self._asker = Asker(url, os.environ.get("DILATON_TOKEN", "") if token is None else token)

    def __repr__(self) -> str:
        """As `<server https://lab.example.org>`."""
        return f"<server {self._asker.url}>"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Anything of the API, by its path below `/api/v1`; values are as JSON has them.

        Raises:
            ServerError: it refuses, or cannot be reached.
        """
        return self._asker.ask(method, path, body)

    def check(self, text: str, overrides: Mapping[str, Any] | None = None) -> str:
        """The name of the lab that is written in `text`.

        Raises:
            ServerError: it has mistakes, which are `problems`.
        """
        asked = {"text": text, "overrides": dict(overrides or {}), "is_drawn": True}
        return str(self.ask("POST", "/check", asked)["name"])

    def keep(self, name: str, text: str) -> str:
        """The identity of one's own lab of a name with this text, which is a new version where it had another.

        Raises:
            ServerError: as of `ask`.
        """
        home = self.ask("GET", "/session")["home"]
        for lab in self._labs():
            if (lab["name"], lab["folder"]) == (name, home):
                if self.ask("GET", f"/labs/{lab['lab']}")["text"] != text:
                    self.ask("PUT", f"/labs/{lab['lab']}", {"base": lab["version"], "text": text})
                return str(lab["lab"])
        return str(self.ask("POST", "/labs", {"name": name, "text": text})["lab"])

    def launch(self, text: str, **asked: Any) -> RemoteRun:
        """Has a lab run; it waits for its turn.

        Args:
            text: The lab, as it is written.
            asked: As `POST /labs/{lab}/runs` takes it: `overrides`, `hold_at`, `stays`, `machines`, `host_s`,
                `max_disk`.

        Raises:
            ServerError: it has mistakes, or the server refuses.
        """
        lab = self.keep(self.check(text, asked.get("overrides")), text)
        # Asked for by a name of its own, so that asking again for an answer that was lost is no second run.
        made = self._surely(f"/labs/{lab}/runs", {"key": secrets.token_hex(16), **asked})
        return RemoteRun(self._asker, str(made["run"]))

    def sweep(self, lab: str, asked: Mapping[str, Any]) -> WholeSweep:
        """Has a lab run with every combination of values; the runs wait for their turns.

        Args:
            lab: Its identity.
            asked: As `POST /labs/{lab}/sweeps` takes it; by the same `key` there is one sweep.

        Returns:
            The sweep, as `GET /sweeps/{sweep}` shows it.

        Raises:
            ServerError: the lab has mistakes with some values, or the server refuses.
        """
        made: WholeSweep = self._surely(f"/labs/{lab}/sweeps", {"key": secrets.token_hex(16), **asked})
        return made

    def saved(self) -> SavedLabs:
        """One's own saved labs.

        Raises:
            ServerError: as of `ask`.
        """
        found: SavedLabs = self.ask("GET", "/saved")
        return found

    def launch_saved(self, name: str, **asked: Any) -> RemoteRun:
        """Has a run go on from a saved lab of one's own; it waits for its turn.

        Args:
            name: Of the saved lab.
            asked: As of `launch`.

        Raises:
            ServerError: there is none, or the server refuses.
        """
        made = self._surely(f"/saved/{quote(name, safe='')}/runs", {"key": secrets.token_hex(16), **asked})
        return RemoteRun(self._asker, str(made["run"]))

    def repeat(self, identity: str, at: str) -> RemoteRun:
        """Has a run that is over run again up to an instant, where it is held; it waits for its turn.

        Args:
            identity: Of the run.
            at: The instant, as a lab would write it.

        Raises:
            ServerError: it cannot be repeated, or the server refuses.
        """
        asked = {"key": secrets.token_hex(16), "at": at}
        made = self._surely(f"/runs/{quote(identity, safe='')}/repeats", asked)
        return RemoteRun(self._asker, str(made["run"]))

    def _surely(self, path: str, wanted: Mapping[str, Any]) -> Any:
        """Asks for something that has a key, and again as long as there is no answer."""
        for left in range(AGAIN_MAX, -1, -1):
            try:
                return self.ask("POST", path, wanted)
            except ServerError as error:
                if error.status not in TRANSIENT or not left:
                    raise
            time.sleep(AGAIN_HOST_S)
        raise AssertionError("unreachable")

    def runs(self) -> Iterator[RunShown]:
        """The runs that one may see, the newest first.

        Raises:
            ServerError: as of `ask`.
        """
        before = ""
        while page := self.ask("GET", f"/runs{before}"):
            yield from page
            before = f"?before={page[-1]['number']}"

    def run(self, identity: str) -> RemoteRun:
        """A run that there is."""
        return RemoteRun(self._asker, identity)

    def show_sweep(self, identity: str) -> WholeSweep:
        """A sweep, with its runs.

        Raises:
            ServerError: as of `ask`.
        """
        shown: WholeSweep = self.ask("GET", f"/sweeps/{quote(identity, safe='')}")
        return shown

    def compare_sweep(self, sweep: str, by: str | None = None, tolerance: float | None = None) -> Compared:
        """Whether the runs of a sweep differ by the value of a field, as `POST /comparisons` tells.

        Args:
            sweep: Its identity.
            by: The field; None: the only one that varies.
            tolerance: A relative difference that is of no relevance; None: as `dilaton compare` has it.

        Raises:
            ServerError: as of `ask`.
        """
        asked = {"sweep": sweep, "by": by} | ({} if tolerance is None else {"tolerance": tolerance})
        found: Compared = self.ask("POST", "/comparisons", asked)
        return found

    def _labs(self) -> Iterator[LabShown]:
        after = ""
        while page := self.ask("GET", f"/labs{after}"):
            yield from page
            after = f"?skip_to={quote(page[-1]['lab'])}"


class RemoteRun:
    """A run of a server. All of it raises `ServerError` where the server refuses, or cannot be reached."""

    def __init__(self, asker: Asker, identity: str) -> None:
        """Use `Server.launch` or `Server.run`."""
        self.identity = identity
        self.asker = asker
        """Asks its server."""
        self.path = f"/runs/{quote(identity, safe='')}"

    def __repr__(self) -> str:
        """As `<run 0123456789abcdef of https://lab.example.org>`."""
        return f"<run {self.identity} of {self.asker.url}>"

    def show(self) -> RunShown:
        """What is known of it: `state`, `reason`, `verdict`, `virtual_s`, and more."""
        shown: RunShown = self.asker.ask("GET", self.path)
        return shown

    def states(self) -> Iterator[str]:
        """Its states, from the present one to one in which it ends, as they come; without asking again and again.

        A connection that is lost is made again, for some two minutes.
        """
        last, told, left = "", "", AGAIN_MAX
        while told not in FINAL:
            try:
                with self.asker.events("/events", last) as events:
                    for number, kind, data in events:
                        last, left = number, AGAIN_MAX
                        state = _state_in(data, self.identity) if kind == "run" else str(self.show()["state"])
                        if state and state != told:
                            told = state
                            yield told
                        if told in FINAL:
                            return
            except ServerError as error:
                if error.status not in TRANSIENT or not left:
                    raise
            left -= 1
            time.sleep(AGAIN_HOST_S)

    def wait(self) -> str:
        """The state in which it has ended, once it has."""
        return list(self.states())[-1]

    def stop(self) -> None:
        """Ends it in good order; one that waits is cancelled."""
        self.asker.ask("POST", f"{self.path}/stop")

    def clock(self, action: str = "show", value: str | None = None) -> Clock:
        """Its clock, after something was done with it: one of `CLOCK_ACTIONS`, `until` and `tdf` with a value."""
        if action == "show":
            if (shown := self.status()["clock"]) is None:
                raise ServerError(f"{self.identity}: its clock has not been released yet")
            return shown
        name = CLOCK_ACTIONS[action]
        found: Clock = self.asker.ask("POST", f"{self.path}/{action}", {name: value} if name else None)
        return found

    def status(self) -> StatusShown:
        """How far it has come, how well time is kept, and what has become of its processes, while it goes on."""
        shown: StatusShown = self.asker.ask("GET", f"{self.path}/status")
        return shown

    def suspend(self) -> PutAway:
        """Puts it away: its memory goes to the server's disk, and its cores are free, until `resume`."""
        away: PutAway = self.asker.ask("POST", f"{self.path}/suspend")
        return away

    def resume(self) -> Clock:
        """Lets it go on that was put away."""
        clock: Clock = self.asker.ask("POST", f"{self.path}/resume")
        return clock

    def save(self, name: str, progress: Progress = _untold) -> tuple[SavedLab, list[str]]:
        """Saves it as a saved lab of one's own; what was saved, and what was not, a sentence each.

        Args:
            name: What the saved lab is called; one of that name is replaced.
            progress: Is told what is being saved, and of how many bytes, from time to time.
        """
        said = self._told("save", {"name": name}, progress)
        return said["saved"], said["left_out"]

    def save_node(self, node: str, name: str, max_size: str | None = None, progress: Progress = _untold) -> ImageShown:
        """Makes an image of a node in the server's store.

        Args:
            node: It has an image.
            name: What the new one is called.
            max_size: How large its files may be together, as a lab would write it; None: half of what is free.
            progress: As of `save`.
        """
        found: ImageShown = self._told("image", {"node": node, "name": name, "max_size": max_size}, progress)["image"]
        return found

    def compare(self) -> RepeatedShown:
        """What is the same as in the run that it repeats, once it is held; another state ends it, and is refused."""
        found: RepeatedShown = self.asker.ask("POST", f"{self.path}/compare")
        return found

    def _told(self, what: str, asked: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """The last of what a server says that saves."""
        said: dict[str, Any] = {}
        with self.asker.answered("POST", f"{self.path}/{what}", asked) as answer:
            for said in lines(answer):
                if "what" in said:
                    progress(str(said["what"]), int(said["bytes"]))
        if "wrong" in said or not said:
            raise ServerError(str(said.get("wrong", "the server has said nothing")))
        return said

    @contextlib.contextmanager
    def capture(
        self, place: str, pcap_filter: str | None = None, snaplen: int | None = None, count: int | None = None
    ) -> Iterator[BinaryIO]:
        """What passes an interface while it goes on, in virtual time: pcapng, to be read.

        Args:
            place: `NODE:INTERFACE`; the interface may be left out where there is one.
            pcap_filter: As for tcpdump; None: every packet.
            snaplen: Bytes of a packet that are kept at most; None: all.
            count: After how many packets it ends; None: with the run.
        """
        asked = {"place": place, "filter": pcap_filter, "snaplen": snaplen, "count": count}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        with self.asker.answered("GET", f"{self.path}/capture?{query}", silence_host_s=None) as answer:
            yield answer

    def remove(self) -> None:
        """Removes it with all that it has left; it has to be over."""
        self.asker.ask("DELETE", self.path)

    def fetch(self, directory: Path) -> None:
        """Copies what it has left into a directory, as if it had run there; the record comes last.

        Raises:
            ServerError: also where the server names a file that would not be in the directory.
            OSError: a file cannot be written.
        """
        for path in sorted(self.files(), key=lambda path: (path == RECORD_FILE, path)):
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with self.opened(path) as answer, os.fdopen(create_file(target), "wb") as file:
                while piece := answer.read(PIECE_BYTES):
                    file.write(piece)

    def files(self) -> list[str]:
        """The paths of what it has left, all of them names below a directory.

        Raises:
            ServerError: also where the server names another.
        """
        found: list[FileShown] = self.asker.ask("GET", f"{self.path}/files")
        paths = [str(file["path"]) for file in found]
        for path in paths:
            pure = PurePosixPath(path)
            if not path or "\0" in path or pure.is_absolute() or ".." in pure.parts or str(pure) != path:
                raise ServerError(f"{path!r}: not a name of a file in a run")
        return paths

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """One of its files, to be read."""
        with self.asker.answered("GET", f"{self.path}/files/{quote(path)}") as answer:
            yield answer


def _state_in(data: dict[str, Any], identity: str) -> str:
    """The state of a run that an event tells of; empty: it is about another."""
    return str(data["state"]) if data.get("run") == identity and data.get("state") else ""
