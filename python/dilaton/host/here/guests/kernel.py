"""Starting the kernel of a guest: its command line, its environment, its jail."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import IO

from dilaton.host import files
from dilaton.host.errors import GuestError, HostLacksError
from dilaton.host.here.guests.attachment import Attachment
from dilaton.host.here.guests.disks import Disks
from dilaton.host.here.jail import control_groups, jail, limits, orphans, warden
from dilaton.host.here.memory.clock_page import ClockPage
from dilaton.host.here.uml import kernels, sharing
from dilaton.host.processes import NICEST
from dilaton.plan.bind import Bind

LEFT_OUT = ("raid6_select_algo", "raid6_init", "calibrate_xor_blocks", "rng_init", "init_jfs_fs")
"""What the kernel does not do at boot: measure, in jiffies, how to do RAID, which never ends on the event drive, where
nothing interrupts (the second name is Linux 7's of the first); open the host's /dev/random, which it would go on
stirring into its own; and make room for transactions of JFS, by as much as there is memory, which took longer than all
else that is built in."""

SECURITY = "yama"
"""What the kernel asks besides its own rules. Debian's would ask SELinux and Tomoyo at each packet, file and program,
though no node has a policy of either."""

LINE_FD_MIN = 900
"""The number of the first serial line's descriptor in the first guest of a run; those of the others follow. They are on
the kernel's command line, which the kernel stirs into its random numbers, and so have to be the same whatever else this
process has open."""

LINES = 2
"""Serial lines of a guest: those of its channel and of its streams."""

ADDR_NO_RANDOMIZE = 0x0040000
"""personality(2)"""

COMMAND_LINE_BYTES_MAX = 4096
"""COMMAND_LINE_SIZE of arch/um/include/asm/setup.h."""

LIBC = ctypes.CDLL(None)

LOOPS_PER_JIFFY = 13_500_000
"""Given to the kernel so that it does not calibrate its delay loop, which nothing in a guest depends on."""


CONNECTION_HASH_ENTRIES = 2048
"""The size of the kernel's table of TCP connections. By itself the kernel takes 16 for a MiB of memory, as for a busy
server; sampling walks through all of them for every node: with 16384 of them that took 12 us more than with 1024."""

FILE_HASHES = ("dhash_entries=131072", "ihash_entries=65536")
"""The sizes of the kernel's tables of names and of files: what it takes in a guest of `FILE_HASHES_BYTES`. By itself it
has them grow with memory, to 24 MiB for 12 GiB, and writes all of them before it boots."""

FILE_HASHES_BYTES = 1 << 30

BSD_TERMINALS = 0
"""Pseudo-terminals by the names of BSD, /dev/ptyp0 and so on, which no program uses any more. Debian's kernel has 256
pairs, and tells /sbin/hotplug of each end while it boots: there is none yet, but a process is made for it each time."""


@dataclass(frozen=True)
class Placement:
    """Where and how a guest runs.

    Attributes:
        run_dir: The run directory on the host; None for a run that leaves nothing: it is then in the jail's memory.
        jailed: Whether the guest is in a jail.
        binds: What nodes are to see of this machine where the jail has places of its own, or are to write.
        files: Of a run directory in the jail, by name.
        disk_bytes: What the run directory may take; None: there is none, or nobody says.
        hidden: Directories of this machine that are empty in the jail.
        behind: By how much nicer the guest is than this process.
    """

    run_dir: Path | None
    jailed: bool
    binds: Sequence[Bind] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    disk_bytes: int | None = None
    hidden: Sequence[Path] = ()
    behind: int = 0

    @property
    def nice(self) -> int:
        """How nice the guest is, which sched(7) has to be 19 at most."""
        return min(NICEST, os.getpriority(os.PRIO_PROCESS, 0) + self.behind)

    @property
    def run_dir_inside(self) -> Path:
        """Where the guest finds the run directory."""
        if self.jailed:
            return jail.RUN_DIR
        assert self.run_dir is not None, "a guest without a jail has its run directory on the host"
        return self.run_dir

    def open_log(self, name: str) -> IO[bytes]:
        """The file that takes the console of guest `name`."""
        if self.run_dir is None:
            return _memory_file(b"")
        log = self.run_dir / "guest" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        return log.open("w+b")


@dataclass(frozen=True)
class Wanted:
    """A guest as it is wanted.

    Attributes:
        name: of the guest.
        memory_bytes: what it is given.
        number: of the guest in its run, from 0.
        seed: when given, the guest boots on the event drive, and nothing in it depends on the host's clock or its
            random numbers: the same seed gives the same guest.
        attachment: its ends of wires to other guests; None for the only guest of a run.
        disks: its disks.
        has_shares: whether nodes in it have CPUs that are shares of its own.
        clock_rate: seconds of its clock per virtual second.
    """

    name: str
    memory_bytes: int
    number: int = 0
    seed: int | None = None
    attachment: Attachment | None = None
    disks: Disks = field(default_factory=Disks)
    has_shares: bool = False
    clock_rate: Fraction = Fraction(1)


@dataclass(frozen=True)
class Kernel:
    """What the kernel of a guest is started with.

    Attributes:
        wanted: the guest.
        placement: where it runs.
        page: its clock page.
        lines: its serial lines, those of the channel and of streams.
        core_number: the core that it is pinned to.
        log: where its console goes.
    """

    wanted: Wanted
    placement: Placement
    page: ClockPage
    lines: Sequence[int]
    core_number: int
    log: IO[bytes]

    async def spawn(self) -> asyncio.subprocess.Process:
        """Starts it.

        Raises:
            HostLacksError: when this machine lacks a part, or its kernel what shares of a CPU take.
        """
        chosen = kernels.chosen()
        if chosen.libraries is not None and not self.placement.jailed:
            raise HostLacksError(f"the kernel {chosen.name} finds its libraries only in a jail", kernels.fix())
        if self.wanted.has_shares:
            sharing.require_sleep(chosen.program)
        agent, clock = files.built(files.AGENT), files.built(files.CLOCK_LIBRARY)
        jailed = self.placement.jailed
        with contextlib.ExitStack() as stack:
            # Opened for a guest without a jail: a path in LD_PRELOAD ends at a space.
            clock_fd = stack.enter_context(clock.open("rb")).fileno()
            line_fds = [stack.enter_context(file).fileno() for file in self._copied_lines()]
            inside_clock = jail.CLOCK if jailed else Path(f"/proc/self/fd/{clock_fd}")
            uml, modules, libraries = chosen.program, chosen.modules, chosen.libraries
            if jailed and modules is not None:
                uml, modules = jail.KERNEL / uml.name, jail.KERNEL / modules.name
            if libraries is not None:
                libraries = jail.KERNEL / libraries.name
            argv = [str(uml), *self._arguments(jail.AGENT if jailed else agent, modules, line_fds, chosen)]
            self._check_length(argv[1:])
            environment = self._environment(inside_clock, libraries, line_fds)
            contents = self.placement.files.items()
            file_fds = {name: stack.enter_context(_memory_file(text)).fileno() for name, text in contents}
            if jailed:
                bwrap = files.program("bwrap", "bubblewrap")
                own = None if chosen.modules is None else chosen.program.parent
                parts = jail.Parts(
                    self.placement.run_dir,
                    agent,
                    clock,
                    file_fds,
                    self.placement.binds,
                    own,
                    self.wanted.memory_bytes,
                    self.placement.hidden,
                )
                group = stack.enter_context(
                    control_groups.made(control_groups.find(), self._memory_bytes_shared(), self.placement.nice)
                )
                argv = [*warden.command(self.page.life_fd, group), *jail.command(bwrap, parts, environment), *argv]
                environment = {}
            file_bytes = self._file_bytes_max()
            orphans.adopt()
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self.log,
                stderr=self.log,
                env=environment,
                pass_fds=(
                    *self.page.guest_fds,
                    clock_fd,
                    *line_fds,
                    *(() if self.wanted.attachment is None else (self.wanted.attachment.fd,)),
                    *self.wanted.disks.fds,
                    *file_fds.values(),
                ),
                # What a terminal sends, as at Ctrl-C, is for Dilaton alone, which then stops the guest in good order.
                start_new_session=True,
                preexec_fn=lambda: _settle(self.core_number, file_bytes, self.placement.nice),
            )
            # Looked up while it boots, as it asks for them only when programs run.
            self.page.tell_functions(*(sharing.address(chosen.program, name) for name in sharing.FUNCTIONS))
            return process

    def _arguments(
        self, agent: Path, modules: Path | None, line_fds: Sequence[int], chosen: kernels.Kernel
    ) -> list[str]:
        """The kernel's command line; paths as they are where it runs."""
        return [
            "rootfstype=hostfs",
            "rw",
            f"mem={self.wanted.memory_bytes // 2**20}M",
            f'init="{agent}"',
            *(f"ssl{number}=fd:{fd}" for number, fd in enumerate(line_fds)),
            "ssl=null",
            "con0=null,fd:1",
            "con=null",
            "quiet",
            "panic=-1",
            f"thash_entries={CONNECTION_HASH_ENTRIES}",
            *self._file_hashes(),
            f"lpj={LOOPS_PER_JIFFY}",
            "rcupdate.rcu_cpu_stall_suppress=1",
            "random.trust_cpu=1",
            f"initcall_blacklist={','.join(LEFT_OUT)}",
            "fb_tunnels=none",
            f"lsm={SECURITY}",
            *(["seccomp=on"] if chosen.has_seccomp else []),
            f"pty.legacy_count={BSD_TERMINALS}",
            # What Linux does not know goes into the environment of its first process.
            *([] if modules is None else [f"DILATON_MODULES={modules}"]),
            *([] if self.wanted.attachment is None else self.wanted.attachment.arguments),
            *self.wanted.disks.arguments,
        ]

    def _file_hashes(self) -> Sequence[str]:
        """What keeps tables small; a guest that repeats has its own, on which nanoseconds of its instants depend."""
        is_large = self.wanted.memory_bytes > FILE_HASHES_BYTES
        return FILE_HASHES if is_large and self.wanted.seed is None else ()

    def _environment(self, clock: Path, libraries: Path | None, line_fds: Sequence[int]) -> dict[str, str]:
        """What the kernel and the clock library in it read; paths as they are where it runs."""
        processes = limits.processes(self.wanted.memory_bytes, platform.release())
        return {
            **({} if self.wanted.attachment is None else self.wanted.attachment.environment),
            **self.wanted.disks.environment,
            **({"DILATON_PROCESSES": str(processes)} if self.placement.jailed and processes else {}),
            "LD_PRELOAD": str(clock),
            **({} if libraries is None else {"LD_LIBRARY_PATH": str(libraries)}),
            "DILATON_CLOCK": ",".join(map(str, (*self.page.guest_fds, *line_fds))),
            # The clock registers a restartable sequence of its own, and a process has one.
            "GLIBC_TUNABLES": "glibc.pthread.rseq=0",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            # The kernel makes ~/.uml.
            "HOME": "/tmp" if self.placement.jailed else f"{self.placement.run_dir}/guest",  # noqa: S108
            "TMPDIR": "/dev/shm",  # noqa: S108 - the guest's memory
        }

    def _memory_bytes_shared(self) -> int:
        """Memory that counts as the guest's own once it has touched it: what it is given, and the run's wires."""
        attachment = self.wanted.attachment
        return self.wanted.memory_bytes + (0 if attachment is None else os.fstat(attachment.fd).st_size)

    def _file_bytes_max(self) -> int | None:
        """What a file that the kernel writes may have: its memory, a disk, or all of the run directory.

        None where nodes may write elsewhere, to files of any size.
        """
        placement = self.placement
        if placement.disk_bytes is None or not placement.jailed or any(bind.writable for bind in placement.binds):
            return None
        disks = (os.fstat(fd).st_size for fd in self.wanted.disks.fds)
        return max(placement.disk_bytes, self.wanted.memory_bytes + jail.BESIDE_MEMORY_BYTES, *disks)

    def _check_length(self, arguments: Sequence[str]) -> None:
        """Refuses what the kernel would not take; there is an argument for each wire."""
        if len(" ".join(arguments)) >= COMMAND_LINE_BYTES_MAX:
            wires = 0 if self.wanted.attachment is None else len(self.wanted.attachment.arguments)
            raise GuestError(
                f"guest {self.wanted.number} has {wires} wires to other guests, those of the agents included, which is "
                "more than a kernel can be told of; divide the lab into fewer guests"
            )

    def _copied_lines(self) -> list[IO[bytes]]:
        """Copies of the lines, with the numbers that they have in the guest."""
        first = LINE_FD_MIN + self.wanted.number * LINES
        copies = [fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, first) for line in self.lines]
        return [os.fdopen(copy, "rb") for copy in copies]


def _memory_file(contents: bytes) -> IO[bytes]:
    """A file without a name, at its beginning."""
    file = os.fdopen(os.memfd_create("dilaton"), "w+b")
    file.write(contents)
    file.seek(0)
    return file


def _settle(core: int, file_bytes: int | None, nice: int) -> None:
    """Prepares this process, freshly forked, to become a kernel, or a jail."""
    os.sched_setaffinity(0, {core})
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    limits.set_for_a_guest(file_bytes)
    # Addresses of the kernel's that differ from run to run would be keys of its hash tables, and so orders of things.
    LIBC.personality(ADDR_NO_RANDOMIZE)
