"""A guest on this machine: one dilated kernel in its jail, from start to end."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import IO

from dilaton.host import cores, files, jail
from dilaton.host.channel import PROTOCOL, Channel, Message
from dilaton.host.clock_page import NEVER_NS, ClockPage, Drive, Orders
from dilaton.host.errors import GuestError
from dilaton.host.streams import Streams
from dilaton.plan.model import Bind

BOOT_TDF = Fraction(1, 50)
"""Pace of a booting guest: the kernel waits for jiffies (RCU grace periods), so its clock
runs ahead of the host's until the guest is built."""

BOOT_HOST_S_MAX = 30.0
"""Host seconds from start to the agent's first word, after which a guest counts as stuck."""

ANSWER_HOST_S_MAX = 10.0
"""Host seconds within which a live guest answers a command."""

REPEATABLE_DATE_NS = 1_767_225_600 * 10**9
"""The date, 1 January 2026, at the start of a guest that does the same with the same seed."""

LEFT_OUT = ("raid6_select_algo", "calibrate_xor_blocks", "rng_init")
"""What the kernel does not do at boot: measure, in jiffies, how to do RAID, which never ends on the event drive, where
nothing interrupts; and open the host's /dev/random, which it would go on stirring into its own."""

LINE_FD_MIN = 900
"""The least number of the descriptors of a guest's serial lines. The numbers are on the kernel's command line, which
the kernel stirs into its random numbers, and so have to be the same whatever else this process has open."""

ADDR_NO_RANDOMIZE = 0x0040000
"""personality(2)"""

LIBC = ctypes.CDLL(None)

LEAD_NS = 1_000_000
"""Virtual time from the release of the clock to the run's virtual 0: room for the agent to be back in its loop."""

LOOK_HOST_S = 0.0005
"""How often the clock page is looked at while something is awaited in it."""

LOOPS_PER_JIFFY = 13_500_000
"""Given to the kernel so that it does not calibrate its delay loop, which nothing in a guest depends on."""


CONNECTION_HASH_ENTRIES = 2048
"""Of the kernel's table of TCP connections. By itself the kernel takes 16 for a MiB of memory, as for a busy server;
sampling walks through all of them for every node: with 16384 of them that took 12 us more than with 1024."""


Progress = Callable[[int, int, str], None]
"""Told while a guest is built: so many of so many of what are up."""


@dataclass(frozen=True)
class Placement:
    """Where and how a guest runs.

    Attributes:
        run_dir: The run directory on the host; None for a run that leaves nothing: it is then in the jail's memory.
        jailed: Whether the guest is in a jail.
        binds: What nodes are to see of this machine where the jail has places of its own, or are to write.
        files: Of a run directory in the jail, by name.
    """

    run_dir: Path | None
    jailed: bool
    binds: Sequence[Bind] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def run_dir_inside(self) -> Path:
        """Where the guest finds the run directory."""
        if self.jailed:
            return jail.RUN_DIR
        assert self.run_dir is not None, "a guest without a jail has its run directory on the host"
        return self.run_dir


class Guest:
    """A running guest. Make it with `start`; `close` ends it, whatever state it is in."""

    def __init__(self, name: str, placement: Placement, process: asyncio.subprocess.Process) -> None:
        """Use `start`."""
        self.name = name
        self.process = process
        self.run_dir_inside = placement.run_dir_inside
        self.kernel = ""
        self.page: ClockPage
        self.channel: Channel
        self.streams: Streams
        self._orders: Orders
        self._pace: Fraction
        self._core: cores.Core
        self._log: IO[bytes]

    @classmethod
    async def start(cls, name: str, memory_bytes: int, placement: Placement, seed: int | None = None) -> Guest:
        """Starts the kernel `name`, its clock at boot pace, and waits for its agent.

        Its console goes to `guest/<name>.log` in the run directory.

        Args:
            name: of the guest.
            memory_bytes: what it is given.
            placement: where it runs.
            seed: when given, the guest boots on the event drive, and nothing in it depends on the host's clock or its
                random numbers: the same seed gives the same guest.

        Raises:
            HostLacksError: when this machine lacks a part.
            GuestError: when the kernel does not come up.
        """
        boot = Orders(BOOT_TDF) if seed is None else Orders(Fraction(1), "event")
        _allow_open_files()
        page = ClockPage(time.time_ns() if seed is None else REPEATABLE_DATE_NS, seed)
        channel, streams = Channel(), Streams()
        core = cores.take()
        log = _open_log(name, placement)
        try:
            page.command(boot)
            process = await _spawn(memory_bytes, placement, page, [channel.guest_fd, streams.guest_fd], core, log)
        except BaseException:
            log.close()
            page.close()
            channel.close()
            await streams.close()
            core.free()
            raise
        finally:
            os.close(channel.guest_fd)
            os.close(streams.guest_fd)
            page.close_guest_side()
        guest = cls(name, placement, process)
        guest.page, guest.channel, guest.streams, guest._core, guest._log = page, channel, streams, core, log
        guest._orders, guest._pace = boot, Fraction(1)
        try:
            await guest._greet()
        except BaseException:
            await guest.close()
            raise
        return guest

    async def _greet(self) -> None:
        await self.channel.open()
        await self.streams.open()
        try:
            hello = await asyncio.wait_for(self.channel.receive(), BOOT_HOST_S_MAX)
        except TimeoutError:
            raise GuestError(f"guest {self.name} said nothing for {BOOT_HOST_S_MAX:.0f} s after its start") from None
        if hello is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), ANSWER_HOST_S_MAX)
            raise GuestError(f"guest {self.name} did not boot: {_last_words(self._log)}")
        if hello.get("type") != "hello" or hello.get("protocol") != PROTOCOL:
            raise GuestError(f"the agent of guest {self.name} speaks another protocol: rebuild it with ./dev setup")
        self.kernel = str(hello["kernel"])

    async def build(self, progress: Progress) -> None:
        """Lets the agent make its part of the plan in the run directory.

        Raises:
            GuestError: when it cannot.
        """
        await self.channel.send({"type": "build", "run_dir": str(self.run_dir_inside), "guest": self.name})
        while (message := await self.receive())["type"] != "ready":
            if message["type"] != "progress":
                raise GuestError(f"guest {self.name} said {message['type']} while it was being built")
            progress(message["done"], message["total"], message["what"])

    async def arm(self, date_ns: int) -> int:
        """Holds the clock and arms the schedule.

        Args:
            date_ns: the guest's CLOCK_REALTIME at the run's virtual 0.

        Returns:
            The run's virtual 0 as in `virtual_ns()`.
        """
        await self.hold()
        zero_ns = self.virtual_ns() + LEAD_NS
        await self.channel.send({"type": "arm", "lead_ns": LEAD_NS, "date_ns": date_ns})
        if (message := await self.receive())["type"] != "armed":
            raise GuestError(f"guest {self.name} said {message['type']} instead of armed")
        self.page.forget_lateness()
        return zero_ns

    @property
    def orders(self) -> Orders:
        """What the clock was ordered last."""
        return self._orders

    async def order(self, orders: Orders) -> None:
        """Gives the clock its orders, and waits until it has taken them over.

        On the event drive it takes them over when the guest next idles.

        Raises:
            GuestError: when the guest does not answer.
        """
        sequence = self.page.command(orders)
        self._orders = orders
        self._pace = orders.tdf or self._pace
        await self._until(lambda: self.page.applied(sequence), "take over a command")

    async def hold(self) -> None:
        """Stops virtual time where it is."""
        await self.order(replace(self._orders, tdf=None, end_ns=None))

    async def release(self, tdf: Fraction, drive: Drive | None = None, max_speed: Fraction | None = None) -> None:
        """Lets virtual time go on, with no end, on the present drive unless another is given."""
        await self.order(Orders(tdf, drive or self._orders.drive, None, max_speed))

    async def set_tdf(self, tdf: Fraction) -> None:
        """Changes the pace of a running clock; drive, end and highest speed stay. A held one stays held."""
        if self._orders.tdf is not None:
            await self.order(replace(self._orders, tdf=tdf))

    async def run_until(self, virtual_ns: int, tdf: Fraction | None = None) -> int:
        """Lets virtual time go on to exactly `virtual_ns`, where the clock stops by itself, and waits for that.

        What runs then goes on for as long as it computes, but at that instant; what sleeps stays asleep.

        Args:
            virtual_ns: nanoseconds since the guest's start, as in `virtual_ns()`.
            tdf: the pace; None for the one it has, or had when it was held.

        Returns:
            The instant at which the clock stands: `virtual_ns`, or an earlier one when somebody held it meanwhile, or
            when the guest has finished its run and waits for the host.

        Raises:
            ValueError: the instant is past.
            GuestError: the guest ended, or was released to run on.
        """
        now_ns = self.virtual_ns()
        if virtual_ns < now_ns:
            raise ValueError(f"{virtual_ns} ns: virtual time is already at {now_ns} ns and never goes back")
        pace = tdf or self._orders.tdf or self._pace
        await self.order(replace(self._orders, tdf=pace, end_ns=virtual_ns))
        while not self.page.is_held(time.monotonic_ns()):
            if self.process.returncode is not None:
                raise GuestError(f"guest {self.name} has ended")
            if self._orders.end_ns is None and self._orders.tdf is not None:
                raise GuestError(f"guest {self.name} was released before it reached {virtual_ns} ns")
            await asyncio.sleep(LOOK_HOST_S)
        return self.virtual_ns()

    async def step(self, tdf: Fraction | None = None) -> int:
        """Lets virtual time go on to the guest's next timer, serves that, and holds; returns the instant.

        Raises:
            GuestError: the guest has no timer set, or does not come to rest.
        """
        # What the last step began may still be going on, at the instant of that step.
        await self._until(lambda: self.page.read("deadline_ns") > self.virtual_ns(), "set its next timer")
        deadline_ns = self.page.read("deadline_ns")
        if deadline_ns == NEVER_NS:
            raise GuestError(f"guest {self.name} has no timer set: nothing will happen in it by itself")
        return await self.run_until(deadline_ns, tdf)

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + ANSWER_HOST_S_MAX
        while not condition():
            if self.process.returncode is not None:
                raise GuestError(f"guest {self.name} has ended")
            if time.monotonic() > deadline:
                raise GuestError(f"the clock of guest {self.name} does not answer: it did not {what}")
            await asyncio.sleep(LOOK_HOST_S)

    def virtual_ns(self) -> int:
        """The guest's virtual now, nanoseconds since its start."""
        return self.page.virtual_ns(time.monotonic_ns())

    async def receive(self) -> Message:
        """The agent's next message.

        Raises:
            GuestError: when the guest ended, or the agent says that it cannot go on.
        """
        message = await self.channel.receive()
        if message is None:
            panic = _panic(self._log)
            raise GuestError(f"guest {self.name} ended by itself" + (f": {panic}" if panic else ""))
        if message["type"] == "fatal":
            raise GuestError(f"guest {self.name}: {message['reason']}")
        return message

    async def halt(self) -> None:
        """Powers the guest off in good order; use `close` afterwards all the same."""
        await self.channel.send({"type": "halt"})
        try:
            await asyncio.wait_for(self.process.wait(), ANSWER_HOST_S_MAX)
        except TimeoutError:
            raise GuestError(f"guest {self.name} does not power off") from None

    async def close(self) -> None:
        """Ends the guest at once, and everything in its jail with it."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        self.channel.close()
        await self.streams.close()
        self.page.close()
        self._log.close()
        self._core.free()


async def _spawn(
    memory_bytes: int, placement: Placement, page: ClockPage, lines: Sequence[int], core: cores.Core, log: IO[bytes]
) -> asyncio.subprocess.Process:
    """Starts the kernel, pinned to its core, its console going to `log`; `lines` are its serial lines."""
    uml = files.program("linux.uml", "user-mode-linux")
    agent, clock = files.built(files.AGENT), files.built(files.CLOCK_LIBRARY)
    with contextlib.ExitStack() as stack:
        # Opened for a guest without a jail: a path in LD_PRELOAD ends at a space.
        clock_fd = stack.enter_context(open(clock, "rb")).fileno()
        own_clock = Path(f"/proc/self/fd/{clock_fd}")
        line_fds = [stack.enter_context(os.fdopen(_copy(line), "rb")).fileno() for line in lines]
        inside_agent, inside_clock = (jail.AGENT, jail.CLOCK) if placement.jailed else (agent, own_clock)
        argv = [str(uml), "rootfstype=hostfs", "rw", f"mem={memory_bytes // 2**20}M", f'init="{inside_agent}"']
        argv += [*(f"ssl{number}=fd:{fd}" for number, fd in enumerate(line_fds)), "ssl=null"]
        argv += ["con0=null,fd:1", "con=null", "quiet", "panic=-1", f"thash_entries={CONNECTION_HASH_ENTRIES}"]
        argv += [f"lpj={LOOPS_PER_JIFFY}", "rcupdate.rcu_cpu_stall_suppress=1", "random.trust_cpu=1"]
        argv += [f"initcall_blacklist={','.join(LEFT_OUT)}"]
        environment = {
            "LD_PRELOAD": str(inside_clock),
            "DILATON_CLOCK": ",".join(map(str, (page.fd, page.wake_fd, *line_fds))),
            # The clock registers a restartable sequence of its own, and a process has one.
            "GLIBC_TUNABLES": "glibc.pthread.rseq=0",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            # The kernel makes ~/.uml.
            "HOME": "/tmp" if placement.jailed else f"{placement.run_dir}/guest",  # noqa: S108
            "TMPDIR": "/dev/shm",  # noqa: S108 - the guest's memory
        }
        file_fds = {name: stack.enter_context(_memory_file(text)).fileno() for name, text in placement.files.items()}
        if placement.jailed:
            bwrap = files.program("bwrap", "bubblewrap")
            own = jail.Parts(placement.run_dir, agent, clock, file_fds, placement.binds)
            argv = [*jail.command(bwrap, own, environment), *argv]
            environment = {}
        else:
            # Without a jail nothing else ends the kernel with us.
            argv = [str(files.program("setpriv", "util-linux")), "--pdeathsig", "KILL", "--", *argv]
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            pass_fds=(page.fd, page.wake_fd, clock_fd, *line_fds, *file_fds.values()),
            # What a terminal sends, as at Ctrl-C, is for Dilaton alone, which then stops the guest in good order.
            start_new_session=True,
            preexec_fn=lambda: _settle(core.number),
        )


def _copy(line: int) -> int:
    """A descriptor of a guest's end of a line, to be closed."""
    return fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, LINE_FD_MIN)


def _memory_file(contents: bytes) -> IO[bytes]:
    """A file without a name, at its beginning."""
    file = os.fdopen(os.memfd_create("dilaton"), "w+b")
    file.write(contents)
    file.seek(0)
    return file


def _open_log(name: str, placement: Placement) -> IO[bytes]:
    """The file that takes the console of guest `name`."""
    if placement.run_dir is None:
        return _memory_file(b"")
    log = placement.run_dir / "guest" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    return log.open("w+b")


def _settle(core: int) -> None:
    """Prepares this process, freshly forked, to become a kernel."""
    os.sched_setaffinity(0, {core})
    # Addresses of the kernel's that differ from run to run would be keys of its hash tables, and so orders of things.
    LIBC.personality(ADDR_NO_RANDOMIZE)


def _allow_open_files() -> None:
    """Lets this process, and the kernels that it starts, open as many files as they ever may.

    A guest's file system keeps a host file open for each file and directory in its cache: a walk over a whole tree, as
    by find, needs a hundred thousand.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _last_words(log: IO[bytes]) -> str:
    """The line of a console that says most about why a kernel did not start."""
    lines = _lines(log)
    telling = [line for line in lines if line.startswith(("bwrap:", "dilaton clock:"))]
    return _panic(log) or (telling or lines or ["it said nothing"])[-1]


def _panic(log: IO[bytes]) -> str:
    """The line of a console in which the kernel says why it panicked; empty when it did not."""
    return next((line for line in _lines(log) if "Kernel panic" in line), "")


def _lines(log: IO[bytes]) -> list[str]:
    # Opened anew: the position of `log` is the kernel's.
    text = Path(f"/proc/self/fd/{log.fileno()}").read_text(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
