"""What a run says of itself while it is saved: where it stands, what it has become by hand, and where its disks are.

Whoever saves has virtual time stand still for as long as the connection lasts. So a save costs no virtual time, what is
read is of one instant, and one that is killed lets the run go on.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dilaton.host.errors import GuestError
from dilaton.lab.settings import apply_settings
from dilaton.lab.text import units
from dilaton.run.control import verbs
from dilaton.run.control.answers import Saving
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Handler, Takeover
from dilaton.run.control.verbs import LinkChange, Nothing
from dilaton.run.source import Source
from dilaton.run.steering.clock import ClockControl

REASON = "saved"


class SaveControl:
    """A run, for those who save it."""

    def __init__(
        self,
        source: Source,
        clock: ClockControl,
        asked: Callable[[], list[tuple[int, LinkChange]]],
        disks: Callable[[], Mapping[str, int]],
        ready: Callable[[], None],
    ) -> None:
        """Takes what a run is.

        Args:
            source: Its lab.
            clock: Its clock.
            asked: Says which changes of links were asked for, with the instants at which they come.
            disks: Says where its disks are; see `port.Guests.disks`.
            ready: Brings the run's record up to date.
        """
        self._source, self._clock, self._asked, self._disks, self._ready = source, clock, asked, disks, ready

    @property
    def handlers(self) -> dict[str, Handler]:
        """What answers the verb of the control socket."""
        return verbs.SAVE_OPEN.by(self._on_open)

    async def _on_open(self, _: Nothing) -> Takeover:
        return Takeover({}, self._stand)

    async def _stand(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Says what is kept, and has virtual time stand still for as long as somebody listens."""
        try:
            async with self._clock.standing(REASON):
                self._ready()
                disks = self._disks()
                writer.write(json.dumps({"result": self._kept(disks)}).encode() + b"\n")
                await writer.drain()
                while (line := await reader.readline()).endswith(b"\n"):
                    _hand_over(writer, disks[line[:-1].decode()])
        except (ControlError, GuestError) as error:
            writer.write(json.dumps({"error": str(error)}).encode() + b"\n")
            await writer.drain()

    def _kept(self, disks: Iterable[str]) -> Saving:
        now_ns = round(self._clock.state()["virtual_s"] * 1e9)
        return Saving(
            virtual_s=now_ns / 1e9,
            settings=[*self._source.settings, *self._steered(now_ns)],
            disks=list(disks),
        )

    def _steered(self, now_ns: int) -> list[str]:
        """What was changed by hand, as settings of the lab: what links have become they are from the start."""
        tdf = [f"time.tdf={self._clock.tdf}"] if self._clock.is_steered else []
        return tdf + [f"changes.+={_change(change, max(0, at_ns - now_ns))}" for at_ns, change in self._asked()]


def _hand_over(writer: asyncio.StreamWriter, file: int) -> None:
    """Gives who listens an open file: its name is one of this process, which nobody in a jail can use."""
    with writer.get_extra_info("socket").dup() as line:
        socket.send_fds(line, [b"\n"], [file])


def _change(asked: LinkChange, after_ns: int) -> str:
    """A change as a lab would have it."""
    data: dict[str, Any] = {}
    apply_settings(data, asked.settings)
    return json.dumps({"at": units.format_duration(after_ns), "link": asked.link, **data})
