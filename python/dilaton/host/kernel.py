"""Starting the kernel of a guest: its command line, its environment, its jail."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path

from dilaton.host import files, jail, orphans
from dilaton.host.channel import Channel
from dilaton.host.clock_page import ClockPage

LEFT_OUT = ("raid6_select_algo", "calibrate_xor_blocks", "rng_init")
"""What the kernel does not do at boot: measure, in jiffies, how to do RAID, which never ends on the event drive, where
nothing interrupts; and open the host's /dev/random, which it would go on stirring into its own."""

CHANNEL_FD_MIN = 900
"""The number of the channel's descriptor in the first guest of a run, one more in each further one. It is on the
kernel's command line, which the kernel stirs into its random numbers, and so has to be the same whatever else this
process has open."""

ADDR_NO_RANDOMIZE = 0x0040000
"""personality(2)"""

PR_SET_PDEATHSIG = 1
"""prctl(2)"""

LIBC = ctypes.CDLL(None)

LOOPS_PER_JIFFY = 13_500_000
"""Given to the kernel so that it does not calibrate its delay loop, which nothing in a guest depends on."""


CONNECTION_HASH_ENTRIES = 2048
"""Of the kernel's table of TCP connections. By itself the kernel takes 16 for a MiB of memory, as for a busy server;
sampling walks through all of them for every node: with 16384 of them that took 12 us more than with 1024."""


@dataclass(frozen=True)
class Placement:
    """Where and how a guest runs: run directory on the host, jailed or not."""

    run_dir: Path
    jailed: bool


@dataclass(frozen=True)
class Kernel:
    """What a kernel is started with.

    Attributes:
        number: of the guest in its run, from 0.
        memory_bytes: what it is given.
        placement: where it runs.
        page: its clock page.
        channel: to its agent.
        core_number: the core that it is pinned to.
        log: where its console goes.
    """

    number: int
    memory_bytes: int
    placement: Placement
    page: ClockPage
    channel: Channel
    core_number: int
    log: Path

    async def spawn(self) -> asyncio.subprocess.Process:
        """Starts it."""
        uml = files.program("linux.uml", "user-mode-linux")
        agent, clock = files.built(files.AGENT), files.built(files.CLOCK_LIBRARY)
        # Opened for a guest without a jail: a path in LD_PRELOAD ends at a space.
        clock_fd = os.open(clock, os.O_RDONLY)
        own_clock = Path(f"/proc/self/fd/{clock_fd}")
        channel_fd = fcntl.fcntl(self.channel.guest_fd, fcntl.F_DUPFD_CLOEXEC, CHANNEL_FD_MIN + self.number)
        inside_agent, inside_clock = (jail.AGENT, jail.CLOCK) if self.placement.jailed else (agent, own_clock)
        argv = [str(uml), "rootfstype=hostfs", "rw", f"mem={self.memory_bytes // 2**20}M", f'init="{inside_agent}"']
        argv += [f"ssl0=fd:{channel_fd}", "ssl=null", "con0=null,fd:1", "con=null", "quiet", "panic=-1"]
        argv += [f"thash_entries={CONNECTION_HASH_ENTRIES}"]
        argv += [f"lpj={LOOPS_PER_JIFFY}", "rcupdate.rcu_cpu_stall_suppress=1", "random.trust_cpu=1"]
        argv += [f"initcall_blacklist={','.join(LEFT_OUT)}"]
        environment = {
            "LD_PRELOAD": str(inside_clock),
            "DILATON_CLOCK": f"{self.page.fd},{self.page.wake_fd},{channel_fd}",
            # The clock registers a restartable sequence of its own, and a process has one.
            "GLIBC_TUNABLES": "glibc.pthread.rseq=0",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/tmp" if self.placement.jailed else str(self.log.parent),  # noqa: S108 - the kernel makes ~/.uml
            "TMPDIR": "/dev/shm",  # noqa: S108 - the guest's memory
        }
        if self.placement.jailed:
            bwrap = files.program("bwrap", "bubblewrap")
            argv = [*jail.command(bwrap, self.placement.run_dir, agent, clock, environment), *argv]
            environment = {}
        self.log.parent.mkdir(exist_ok=True)
        orphans.adopt()
        parent = os.getpid()
        with self.log.open("wb") as console, os.fdopen(clock_fd), os.fdopen(channel_fd):
            return await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=environment,
                pass_fds=(self.page.fd, self.page.wake_fd, channel_fd, clock_fd),
                # What a terminal sends, as at Ctrl-C, is for Dilaton alone, which then stops the guest in good order.
                start_new_session=True,
                preexec_fn=lambda: _settle(self.core_number, parent),
            )


def _settle(core: int, parent: int) -> None:
    """Prepares this process, freshly forked by `parent`, to become a kernel, or the jail of one."""
    # It ends with its parent from here on: a jail sets that up for itself too late for an early end.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.sched_setaffinity(0, {core})
    # Addresses of the kernel's that differ from run to run would be keys of its hash tables, and so orders of things.
    LIBC.personality(ADDR_NO_RANDOMIZE)


def allow_open_files() -> None:
    """Lets this process, and the kernels that it starts, open as many files as they ever may.

    A guest's file system keeps a host file open for each file and directory in its cache: a walk over a whole tree, as
    by find, needs a hundred thousand.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
