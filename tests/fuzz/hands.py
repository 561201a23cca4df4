"""What people ask of a run at random moments: clock, links, faults, programs in nodes, copies, to be saved or ended.

One to three of them do so at once, each a few times. Which, and after how much of the host's time, is drawn from the
seed; what the run is at by then is not, so that a round with hands need not come out the same way twice. Each is answered
or refused within a bound of the host's time. Where the clock of the event drive is held, a program that polls keeps
others from its guest (docs/time.md): what has waited for long there is to be answered once the clock goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dilaton.host.tasks import within
from dilaton.run.control.errors import ControlError
from dilaton.service.live import AsyncRun, attach
from tests.conftest import command_line
from tests.fuzz.labs import fault
from tests.fuzz.networks import Fields, Network

ANSWER_HOST_S = 90.0
"""After which nothing may be without an answer, on a machine that does much else."""

SAVED = "fuzzed"
"""The name by which a run is saved."""

STATUSES = {0, 1, 2, 3, 130}
"""The exit statuses of our commands."""

ACTS = [
    *("clock", "clock", "hold", "hold", "step", "until", "tdf", "speed", "suspend"),
    *("exec", "exec", "exec", "large", "sleep", "poll", "kill-shell", "shell", "cp-to", "cp-from", "tree"),
    *("fault", "fault", "fault", "undo", "loss", "down", "delay"),
    *("save", "capture", "logs", "top", "ps", "status", "follow", "stop"),
]


@dataclass(frozen=True)
class Act:
    """Something that somebody does, so long after what they did before; `chance` is what else is drawn for it."""

    what: str
    after_host_s: float
    chance: int


@dataclass
class Doing:
    """Who does something in a run.

    Attributes:
        run: That.
        lab: Its lab.
        net: Its network.
        environment: That of commands.
        directory: For what is copied.
    """

    run: AsyncRun
    lab: Fields
    net: Network
    environment: Mapping[str, str]
    directory: Path

    async def command(self, *arguments: str | Path, then: float | None = None) -> str:
        """Has a command of ours do it; returns what it printed.

        Args:
            arguments: Those of the command.
            then: Host seconds after which it is killed, if it is.

        Raises:
            ControlError: It has not been done.
        """
        line = command_line(*arguments)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *line, env=self.environment, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        said = asyncio.create_task(process.communicate())
        try:
            if then is not None:
                await asyncio.sleep(then)
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            text = (await said)[0].decode(errors="replace")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert "Traceback" not in text, f"{arguments[0]}: {text[-1500:]}"
        assert then is not None or process.returncode in STATUSES, f"{arguments[0]}: {text[-500:]}"
        if process.returncode and then is None:
            raise ControlError(f"{process.returncode}: {text.strip()}")
        return text

    async def held(self, act: Act) -> None:
        """Holds the clock, does something, and lets it go on."""
        draw = random.Random(act.chance)
        await self.run.hold()
        try:
            await asyncio.sleep(draw.random() / 2)
            if act.what == "step":
                await self.run.step()
                await self.run.step()
            elif act.what == "until":
                ahead = draw.choice([0.000_001, 0.01, 0.1, 0.5])
                await self.run.until((await self.run.clock()).virtual_s + ahead)
            elif draw.random() < 0.5:
                await self.run.execute(draw.choice(self.net.hosts), "date; ls / | head -3; echo x > /var/tmp/x")
        finally:
            with contextlib.suppress(ControlError):
                await self.run.release()

    async def execute(self, act: Act) -> None:
        """Executes a command in a node."""
        draw = random.Random(act.chance)
        node = draw.choice(self.net.hosts)
        plain = ["true", "exit 7", "kill -9 $$", "echo out; echo err >&2", "cat /proc/uptime /proc/net/dev", "cat"]
        command = {
            "exec": draw.choice(plain),
            "large": "head -c 3000000 /dev/zero",
            "sleep": "sleep 0.2 & sleep 0.05",
            "poll": f"ping -c 20 -i 0.002 {draw.choice(self.net.hosts)}",
        }[act.what]
        done = await self.run.execute(node, command)
        if act.what == "large" and done.returncode == 0:
            assert len(done.stdout) == 3_000_000, f"{len(done.stdout)} bytes of 3,000,000"

    async def begin_fault(self, act: Act) -> None:
        """Begins a fault, and may take it back."""
        draw = random.Random(act.chance)
        made = fault(draw, self.lab, self.net)
        made.pop("at")
        if "reboot" not in made and "kill" not in made:
            made["for"] = made.get("for", "200ms")
        begun = await self.run.begin_fault(made)
        if draw.random() < 0.5:
            await asyncio.sleep(draw.random() / 2)
            await self.run.undo_faults(begun[0].name)

    async def change_link(self, act: Act) -> None:
        """Changes a link, and changes it back."""
        draw = random.Random(act.chance)
        links = await self.run.links()
        if not links:
            return
        link = draw.choice(links)
        ways: dict[str, tuple[Fields, Fields]] = {
            "loss": ({"loss": "30%"}, {"loss": "0%"}),
            "down": ({"down": True}, {"down": False}),
            "delay": ({"delay": "40ms"}, {"rate": "2Mbit"}),
        }
        for fields in ways[act.what]:
            await self.run.set_link(link, **fields)
            await asyncio.sleep(draw.random() / 4)

    async def shell(self, act: Act) -> None:
        """Runs a program by `shell`, which may be killed."""
        draw = random.Random(act.chance)
        node = draw.choice(self.net.hosts)
        if act.what == "kill-shell":
            await self.command("shell", "-T", self.run.path, node, "sleep", "30", then=0.5 + draw.random())
        else:
            terminal = draw.choice(["-t", "-T"])
            await self.command("shell", terminal, self.run.path, node, "sh", "-c", "echo $0; hostname")

    async def copy(self, act: Act) -> None:
        """Copies to a node, or from there."""
        draw = random.Random(act.chance)
        node, there = draw.choice(self.net.hosts), self.directory / f"copy-{act.chance}"
        if act.what == "cp-to":
            there.write_bytes(random.Random(1).randbytes(300_000))
            await self.command("cp", self.run.path, there, f"{node}:/var/tmp/")
            back = there.with_suffix(".back")
            await self.command("cp", self.run.path, f"{node}:/var/tmp/{there.name}", back)
            assert back.read_bytes() == there.read_bytes(), "a copy came back other than it went"
        else:
            await self.command(
                "cp", self.run.path, f"{node}:{'/etc/apt' if act.what == 'tree' else '/proc/uptime'}", there
            )

    async def suspend(self, act: Act) -> None:
        """Puts the run away, and brings it back."""
        await self.run.suspend()
        await asyncio.sleep(random.Random(act.chance).random())
        await self.run.resume()

    async def look(self, act: Act) -> None:
        """Looks at the run by a command."""
        path = self.run.path
        node = random.Random(act.chance).choice(self.net.hosts)
        commands: dict[str, tuple[str | Path, ...]] = {
            "logs": ("logs", path),
            "top": ("top", path, "--once"),
            "ps": ("ps",),
            "status": ("clock", path),
            "save": ("save", path, SAVED),
            "capture": ("capture", path, node, "-c", "3", "-w", self.directory / f"{act.chance}.pcapng"),
        }
        # A node may send nothing any more.
        await self.command(*commands[act.what], then=3.0 if act.what == "capture" else None)

    async def follow(self, act: Act) -> None:
        """Follows what happens, for a moment."""
        seen = 0
        async with contextlib.aclosing(self.run.follow()) as happenings:
            async for _ in happenings:
                seen += 1
                if seen > act.chance % 20:
                    break

    async def do(self, act: Act) -> None:
        """Does it, to its answer."""
        doers: dict[str, Callable[[Act], Awaitable[object]]] = {
            **dict.fromkeys(("hold", "step", "until"), self.held),
            **dict.fromkeys(("exec", "large", "sleep", "poll"), self.execute),
            **dict.fromkeys(("loss", "down", "delay"), self.change_link),
            **dict.fromkeys(("shell", "kill-shell"), self.shell),
            **dict.fromkeys(("cp-to", "cp-from", "tree"), self.copy),
            **dict.fromkeys(("logs", "top", "ps", "status", "save", "capture"), self.look),
            "clock": lambda _: self.run.clock(),
            "fault": self.begin_fault,
            "undo": lambda _: self.run.undo_faults(),
            "tdf": lambda act: self.run.set_tdf(round(10 ** random.Random(act.chance).uniform(-2, 1), 3)),
            "speed": lambda act: self.command("clock", self.run.path, "speed", str(1 + act.chance % 3)),
            "suspend": self.suspend,
            "follow": self.follow,
            "stop": lambda _: self.run.stop(),
        }
        await doers[act.what](act)


def make_hands(seed: int) -> list[list[Act]]:
    """What each person does in the round of that seed; in half of all rounds nobody does anything."""
    draw = random.Random(seed + 10**6)
    if draw.random() < 0.5:
        return []
    acts = [act for act in ACTS if act != "stop" or draw.random() < 0.3]
    return [
        [Act(draw.choice(acts), draw.expovariate(3), draw.randrange(10**6)) for _ in range(draw.randint(1, 8))]
        for _ in range(draw.choice([1, 1, 2, 3]))
    ]


async def work(doing: Doing, acts: Sequence[Act], log: list[str]) -> None:
    """Has a person do all that they do; raises `AssertionError` for what has no answer."""
    for act in acts:
        await asyncio.sleep(act.after_host_s)
        done = asyncio.ensure_future(doing.do(act))
        is_late = not (await asyncio.wait([done], timeout=ANSWER_HOST_S))[0]
        if is_late:
            with contextlib.suppress(ControlError):
                await within(ANSWER_HOST_S, doing.run.release())
            await asyncio.wait([done], timeout=ANSWER_HOST_S)
        if not done.done():
            done.cancel()
            raise AssertionError(f"{act.what} has no answer after {2 * ANSWER_HOST_S:g} s; before: {', '.join(log)}")
        try:
            await done
            log.append(act.what)
        except ControlError as error:
            log.append(f"{act.what}: {str(error)[-100:]}")
        if is_late and doing.lab["time"]["drive"] != "event":
            raise AssertionError(f"{act.what} has no answer before the clock is released; before: {', '.join(log)}")


async def reached(path: Path) -> AsyncRun:
    """The run of a directory, once its clock has been released."""
    while True:
        with contextlib.suppress(ControlError):
            run = await attach(path)
            await run.clock()
            return run
        await asyncio.sleep(0.05)


async def let_go(path: Path) -> None:
    """Lets a run go on once it holds its clock, as it was told to before."""
    run = await reached(path)
    with contextlib.suppress(ControlError):
        while not (await run.clock()).held:
            await asyncio.sleep(0.05)
        await run.release()


async def steer(
    path: Path,
    hands: Sequence[Sequence[Act]],
    lab: Fields,
    net: Network,
    environment: Mapping[str, str],
    log: list[str],
) -> None:
    """Has all people do what they do, and the clock go on in the end; what was answered is added to `log`."""
    doing = Doing(await reached(path), lab, net, environment, path.parent)
    await asyncio.gather(*(work(doing, acts, log) for acts in hands))
    with contextlib.suppress(ControlError):
        await doing.run.release()
