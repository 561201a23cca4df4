"""The guests of a run on several machines, as one; what `host/here/guests/guests.py` is for one machine."""

from __future__ import annotations

import asyncio
import base64
import json
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dilaton.cluster.files import archive
from dilaton.cluster.lines import Lines
from dilaton.cluster.relay import Saying
from dilaton.cluster.sessions import FarSessions
from dilaton.cluster.values import from_json, to_json
from dilaton.host.counters import Counters, Traffic, Wires
from dilaton.host.errors import GuestError, MachineLostError
from dilaton.host.identity import Identity
from dilaton.host.messages import Event, Finished, FromAgent, Names, ToAgent, Update, parse
from dilaton.host.orders import NEVER_NS, Orders
from dilaton.host.port import LEFT_OUT_FILE
from dilaton.host.tasks import all_of, beside, within

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

FRAME_BYTES_MIN = 64
"""What a frame between two machines counts for at least."""

COLLECT_HOST_S_MAX = 30.0
"""How long it may take to bring files of a run that has failed here."""


class Guest:
    """A guest on some machine."""

    def __init__(self, name: str, lines: Lines, machine: int, place: int, run_dir: Path) -> None:
        """It is the guest at `place` of its machine."""
        self.name, self.kernel = name, ""
        self._lines, self._machine, self._place, self._run_dir = lines, machine, place, run_dir
        self._counters, self._is_stopped = Counters(), False
        self.streams = FarSessions(place, lambda saying: lines.put(machine, saying))

    def see(self, seen: Saying) -> None:
        """Takes in what its agent has seen of it."""
        self._counters = from_json(Counters, seen["counters"])
        self._is_stopped, self.kernel = bool(seen["is_stopped"]), str(seen["kernel"])

    def reached_ns(self) -> int:
        """See `port.Guest`."""
        return self._counters.virtual_ns

    def counters(self) -> Counters:
        """See `port.Guest`."""
        return self._counters

    def is_stopped(self) -> bool:
        """See `port.Guest`."""
        return self._is_stopped

    async def send(self, message: ToAgent) -> None:
        """See `port.Guest`."""
        more = {}
        if isinstance(message, Update):
            more["file"] = base64.b64encode((self._run_dir / message.file).read_bytes()).decode()
        await self._lines.ask(self._machine, "send", guest=self._place, message=message.json(), **more)


class Guests:
    """The guests of a run. `close` ends them, and all machines."""

    def __init__(self, planned: Plan, homes: Sequence[int], lines: Lines, run_dir: Path) -> None:
        """None of them is booted yet."""
        self._planned, self._homes, self._lines, self._run_dir = planned, homes, lines, run_dir
        self._numbers = [[guest for guest, home in enumerate(homes) if home == machine] for machine in lines.machines]
        places = {guest: place for numbers in self._numbers for place, guest in enumerate(numbers)}
        self.all = tuple(
            Guest(guest.name, lines, homes[number], places[number], run_dir)
            for number, guest in enumerate(planned.guests)
        )
        self._seen: list[Saying | None] = [None for _ in lines.machines]
        self._identity = Identity()
        self._is_collected = False
        lines.seen, lines.of_line = self._see, self._of_line

    def _see(self, machine: int, seen: Saying) -> None:
        self._seen[machine] = seen
        for number, of_guest in zip(self._numbers[machine], seen["guests"], strict=True):
            self.all[number].see(of_guest)

    def _of_line(self, machine: int, place: int, saying: Saying) -> None:
        self.all[self._numbers[machine][place]].streams.take(saying)

    def _all_seen(self) -> list[Saying]:
        return [seen for seen in self._seen if seen is not None]

    async def boot(self, **arguments: Any) -> None:
        """Boots them; see `port.Machine`."""
        identities = await self._lines.ask_all("boot", homes=list(self._homes), **arguments)
        found = [from_json(Identity, each) for each in identities]
        self._identity = found[0]
        # It may be in another place there.
        if others := {each.sha256 for each in found} - {found[0].sha256}:
            raise GuestError(f"machines have different kernels: sha256 {found[0].sha256} and {', '.join(others)}")
        if len({each.has_seccomp for each in found}) > 1:
            raise GuestError("kernels trace their programs on one machine and not on another")

    def disks(self) -> Mapping[str, int]:
        """They are on other machines.

        Raises:
            GuestError: In any case.
        """
        raise GuestError("the run is spread over several machines: its disks are not here")

    async def suspend(self) -> int:
        """As of a run on this machine alone.

        Raises:
            GuestError: Always.
        """
        raise GuestError("the run is spread over several machines, and cannot be suspended")

    async def resume(self) -> None:
        """Nothing is ever put away."""

    def homes(self) -> Sequence[str]:
        """See `port.Guests`."""
        return [self._lines.name(home) for home in self._homes]

    def identity(self) -> Identity:
        """See `port.Guests`."""
        return self._identity

    def pace(self) -> Fraction | None:
        """See `port.Guests`."""
        seen = self._seen[self._homes[0]]
        return None if seen is None or seen["pace"] is None else from_json(Fraction, seen["pace"])

    def wires(self) -> Wires | None:
        """See `port.Guests`: of each way, what its sender's machine and its receiver's have counted."""
        of_machines = [None if seen is None else from_json(Wires | None, seen["wires"]) for seen in self._seen]  # type: ignore[arg-type]
        known = [each for each in of_machines if each is not None]
        if len(known) < len(of_machines):
            return None
        ways = [
            joined(known[self._homes[way.sender]].ways[number], known[self._homes[way.receiver]].ways[number])
            if self._homes[way.sender] != self._homes[way.receiver]
            else known[self._homes[way.sender]].ways[number]
            for number, way in enumerate(known[0].ways)
        ]
        return Wires(ways, [known[home].waits[guest] for guest, home in enumerate(self._homes)])

    def look(self) -> tuple[int, bool]:
        """See `port.Clocks`."""
        looks = [seen["look"] for seen in self._all_seen()]
        return min((now_ns for now_ns, _ in looks), default=0), all(is_held for _, is_held in looks)

    def latest_ns(self) -> int:
        """See `port.Clocks`."""
        return max((seen["latest_ns"] for seen in self._all_seen()), default=0)

    def is_held(self) -> bool:
        """See `port.Clocks`."""
        return self.look()[1]

    async def arm(self, date_ns: int) -> None:
        """See `port.Guests`."""
        await self._lines.ask_all("arm", date_ns=date_ns)

    async def order(self, orders: Orders) -> None:
        """See `port.Clocks`."""
        await self._lines.ask_all("order", orders=to_json(orders))

    async def stop_clocks(self) -> None:
        """See `port.Guests`."""
        await self._lines.ask_all("stop_clocks")

    async def hold(self) -> None:
        """See `port.Clocks`."""
        await self.stop_clocks()
        latest_ns = self.latest_ns()
        if self.look()[0] < latest_ns:
            await self.run_until(latest_ns, None)

    async def set_tdf(self, tdf: Fraction) -> None:
        """See `port.Clocks`."""
        await self._lines.ask_all("set_tdf", tdf=to_json(tdf))

    async def set_max_speed(self, speed: Fraction | None) -> None:
        """See `port.Clocks`."""
        await self._lines.ask_all("set_max_speed", speed=to_json(speed))

    async def run_until(self, at_ns: int, tdf: Fraction | None) -> None:
        """See `port.Clocks`."""
        await self._lines.ask_all("run_until", at_ns=at_ns, tdf=to_json(tdf))

    async def step(self, tdf: Fraction) -> None:
        """See `port.Clocks`."""
        due_ns = min(await self._lines.ask_all("next_timer"))
        if due_ns == NEVER_NS:
            raise GuestError("no guest has a timer set: nothing will happen by itself")
        await self.run_until(due_ns, tdf)

    async def follow(self, told: Callable[[int, FromAgent | Event], None]) -> list[Finished]:
        """See `port.Guests`."""
        names, failed = Names(self._planned), asyncio.get_running_loop().create_future()

        def hear(machine: int, guest: int, message: Saying) -> None:
            try:
                if guest not in self._numbers[machine]:
                    raise ValueError(f"guest {guest} is not on it")
                said = parse(json.dumps(message).encode())
                names.check(said)
                told(guest, said)
            except (ValueError, GuestError) as error:
                if not failed.done():
                    failed.set_exception(GuestError(f"machine {machine} said what cannot be: {error}"))

        async def fail() -> None:
            await failed

        async def lose() -> None:
            why = await asyncio.shield(self._lines.lost)
            what = f"{why}, at {self.look()[0] / 1e9:.6f} virtual seconds"
            raise MachineLostError(why.machine, what) if isinstance(why, MachineLostError) else GuestError(what)

        self._lines.told = hear
        of_machines = await beside(self._followed(), fail(), lose())
        finished: dict[int, Finished] = {}
        for numbers, messages in zip(self._numbers, of_machines, strict=True):
            for number, message in zip(numbers, messages, strict=True):
                last = parse(json.dumps(message).encode())
                if not isinstance(last, Finished):
                    raise GuestError(f"the last word of guest {self.all[number].name} was {last.tag}")
                finished[number] = last
        return [finished[number] for number in range(len(self.all))]

    async def _followed(self) -> list[Any]:
        try:
            return await self._lines.ask_all("follow")
        except GuestError:
            if self._lines.lost.done():
                # Who waits for that knows when it was.
                await asyncio.Event().wait()
            raise

    async def send(self, message: ToAgent) -> None:
        """See `port.Guests`."""
        for guest in self.all:
            await guest.send(message)

    async def halt(self) -> None:
        """See `port.Guests`; what guests have written comes into the run directory."""
        await self._lines.ask_all("halt")
        if errors := await self._collect(None):
            raise errors[0]

    async def _collect(self, patience_host_s: float | None) -> list[GuestError]:
        """Brings here what there is, names in `LEFT_OUT_FILE` what is not; returns why, where it should be."""
        self._is_collected = True
        came = await all_of(self._collect_from(machine, patience_host_s) for machine in self._lines.machines)
        if left_out := [line for lines, _ in came for line in lines]:
            (self._run_dir / LEFT_OUT_FILE).write_text("".join(f"{line}\n" for line in left_out))
        return [error for _, error in came if error is not None]

    async def _collect_from(self, machine: int, patience_host_s: float | None) -> tuple[list[str], GuestError | None]:
        name = self._lines.name(machine)
        try:
            # Without a name, so that nothing of it is left, whatever happens.
            with tempfile.TemporaryFile(dir=self._run_dir) as contents:
                if not await within(patience_host_s, self._lines.collect(machine, contents)):
                    why = f"files of {name} cannot be brought here: it was lost"
                    return [f"all files of {name}: it was lost"], MachineLostError(name, why)
                return await asyncio.to_thread(archive.unpack, contents, self._run_dir), None
        except TimeoutError:
            why, lost = f"that takes more than {patience_host_s:g} s", None
        except (GuestError, OSError, tarfile.TarError) as error:
            why, lost = str(error), error.machine if isinstance(error, MachineLostError) else None
        what = f"files of {name} cannot be brought here: {why}"
        return [f"all other files of {name}: {why}"], GuestError(what) if lost is None else MachineLostError(lost, what)

    def kill(self) -> None:
        """See `port.Guests`."""
        if not self._lines.lost.done():
            self._lines.lost.set_result(GuestError("the run was ended"))

    async def close(self) -> None:
        """See `port.Guests`."""
        try:
            if not self._is_collected:
                # The run has failed, and its reason is known; what is not here for it is named.
                await self._collect(COLLECT_HOST_S_MAX)
        finally:
            await self._lines.end()
            for guest in self.all:
                guest.streams.close()


def joined(sent: Traffic, received: Traffic) -> Traffic:
    """What a way between two machines has carried.

    Args:
        sent: As counted where its sender is; whoever carries messages has received it there.
        received: As counted where its receiver is; whoever carries messages has sent it there, but for what came after
            the receiver had left.
    """
    between = sent.received - received.sent - received.not_sent
    return replace(
        received,
        sent=sent.sent,
        bytes_sent=sent.bytes_sent,
        not_sent=sent.not_sent,
        not_received=received.not_received + received.not_sent,
        late=sent.late + received.late,
        disordered=sent.disordered + received.disordered,
        bytes_under_way=sent.bytes_under_way + received.bytes_under_way + max(0, between) * FRAME_BYTES_MIN,
    )
