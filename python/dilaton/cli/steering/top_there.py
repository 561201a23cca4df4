"""`dilaton --server URL top`: a server's run, of whose samples only the ends are asked for."""

from __future__ import annotations

from functools import cached_property
from urllib.parse import urlencode

from dilaton.cli.steering.top import Seen
from dilaton.measure.layouts import LAYOUTS
from dilaton.measure.recent import Row, latest
from dilaton.plan.model import Plan
from dilaton.remote.asking import ServerError
from dilaton.remote.server import RemoteRun

HEADER_BYTES_MAX = 4096

TAIL_BYTES = 1 << 17
"""How much of the end of a table is asked for: the last two samples of some 500 interfaces of a guest."""

NOT_THERE, NOT_NOW = 404, 409
"""Statuses of answers: a run has left no such thing; it does not go on."""


class There:
    """A run of a server, as `top.show` watches it."""

    refresh_host_s = 1.0

    def __init__(self, run: RemoteRun) -> None:
        """A run that goes on."""
        self._run, self.name = run, run.identity
        self._lab = run.show()["name"]

    def seen(self) -> Seen | None:
        """The run as it is now; None: it does not go on."""
        try:
            status = self._run.status()
        except ServerError as error:
            if error.status != NOT_NOW:
                raise
            return None
        if status["clock"] is None:
            return None
        of_all = status["fidelity"], status["verdict"]
        return Seen(self._lab, status["clock"], *of_all, status["processes"], status["guests"])

    def plan(self) -> str:
        """Its `plan.json`."""
        return self._plan

    @cached_property
    def _plan(self) -> str:
        with self._run.asker.answered("GET", f"{self._run.path}/plan") as answer:
            return answer.read().decode(errors="replace")

    @cached_property
    def guests(self) -> list[str]:
        """The names of its guests, each of which has tables of its own."""
        return [guest.name for guest in Plan.model_validate_json(self._plan).guests]

    def samples(self, table: str) -> list[Row]:
        """The latest sample of each interface, or of each node, of all guests; empty when none were asked for."""
        found = []
        for guest in self.guests:
            header = self._piece(guest, table, 0, HEADER_BYTES_MAX).partition("\n")[0]
            found += latest(LAYOUTS[table], header, self._piece(guest, table, -TAIL_BYTES, TAIL_BYTES))
        return found

    def _piece(self, guest: str, table: str, start: int, count: int) -> str:
        asked = urlencode({"guest": guest, "table": table, "start": start, "count": count})
        try:
            with self._run.asker.answered("GET", f"{self._run.path}/samples?{asked}") as answer:
                return answer.read().decode(errors="replace")
        except ServerError as error:
            if error.status != NOT_THERE:
                raise
            return ""
