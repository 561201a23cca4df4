"""`dilaton exec`: streams, exit status, signals and terminals pass through as with sudo."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.here.jail import jail
from dilaton.host.orders import REPEATABLE_DATE_NS
from dilaton.host.processes import descent
from tests.conftest import PATIENCE_HOST_S, PYTHON, command_line, dilaton, environment, started
from tests.terminal import TypedAt


def execute(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs `dilaton exec` to its end, with no input unless it is given."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return dilaton("exec", *arguments, **options)


def test_a_guest_makes_no_room_for_jfs() -> None:
    found = execute("--", "cat", "/proc/filesystems").stdout.split()
    assert "ext4" in found
    assert "jfs" not in found


def test_output_error_and_status_are_those_of_the_command() -> None:
    done = execute("--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)


def test_the_date_at_the_start_is_that_of_the_host_unless_it_is_to_be_repeatable() -> None:
    before = time.time()
    shown = float(execute("--", "date", "+%s.%N").stdout)
    # An idle guest skips its time: whatever it waits for before the command would show here as minutes.
    assert before < shown < time.time()
    assert execute("--drive", "event", "--", "date", "-u", "+%F").stdout == "2026-01-01\n"


def test_options_after_the_command_are_its_own() -> None:
    assert execute("echo", "--tdf", "x").stdout == "--tdf x\n"


def test_input_arrives_and_ends() -> None:
    text = "".join(f"{number}\n" for number in range(30_000))
    assert execute("--", "cat", input=text).stdout == text


@pytest.mark.parametrize("drive", ["work", "event"])
def test_large_input_arrives_whole(drive: str) -> None:
    """The kernel gets it byte by byte out of blocks (`crates/clock/src/kernel/serial.rs`), none of which may be lost or repeated."""
    numbers = "".join(f"{number:07}\n" for number in range(500_000))
    done = execute("--drive", drive, "--", "sha256sum", input=numbers)
    assert done.stdout.split()[0] == hashlib.sha256(numbers.encode()).hexdigest()


def test_a_command_that_does_not_exist_has_status_127() -> None:
    done = execute("--", "no-such-program")
    assert done.returncode == 127
    assert done.stderr == "dilaton: exec no-such-program: No such file or directory\n"


def test_a_file_that_cannot_be_executed_has_status_126() -> None:
    done = execute("--", "/etc/passwd")
    assert (done.returncode, done.stderr) == (126, "dilaton: exec /etc/passwd: Permission denied\n")


def test_a_command_that_a_signal_kills_has_the_status_that_shells_give_it() -> None:
    assert execute("--", "sh", "-c", "kill -SEGV $$").returncode == 128 + signal.SIGSEGV


def test_the_command_runs_as_root_here_with_our_environment(tmp_path: Path) -> None:
    done = execute(
        "--",
        "sh",
        "-c",
        'echo "$(id -u) $PWD $COLOUR $(hostname)"',
        cwd=tmp_path,
        env=environment() | {"COLOUR": "red"},
    )
    assert done.stdout == f"0 {tmp_path} red exec\n"


def test_what_is_written_stays_in_the_guest_except_where_it_may(tmp_path: Path) -> None:
    kept, lost = tmp_path / "kept", tmp_path / "lost"
    kept.mkdir()
    lost.mkdir()
    script = f"touch {kept}/a {lost}/a /etc/dilaton-test /var/dilaton-test; ls {kept} {lost} /etc/dilaton-test"
    done = execute("--rw", kept, "--", "sh", "-c", script, cwd=lost)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.glob("*/*")] == ["a"]
    assert not Path("/etc/dilaton-test").exists() and not Path("/var/dilaton-test").exists()


def test_what_is_written_to_the_output_directory_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "new" / "results"
    assert execute("--out", out, "--", "touch", out / "a").returncode == 0
    assert [path.name for path in out.iterdir()] == ["a"]


def test_what_a_guest_cannot_give_is_said_when_a_program_that_asked_for_it_fails() -> None:
    asks = """
import ctypes, mmap, os
def tried(ask):
    try:
        ask()
    except OSError:
        pass
tried(lambda: mmap.mmap(-1, 8 << 40, prot=0, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000))
tried(lambda: os.open("/dev/kvm", os.O_RDWR))
tried(lambda: os.sched_setaffinity(0, {3}))
ctypes.CDLL(None).syscall(158, 0x1023, 18)  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA)
print(os.uname().release)
raise SystemExit(1)
"""
    done = execute("--", str(PYTHON), "-c", asks)
    assert done.returncode == 1
    # Linux 7 gives a program as much as a machine does.
    too_much = "dilaton: 8,192 GiB of address space were asked for at once, and a guest's kernel gives a program less"
    assert done.stderr.splitlines() == [
        *([too_much] if done.stdout.startswith("6.") else []),
        "dilaton: /dev/kvm was asked for; a guest cannot have guests",
        "dilaton: another CPU than CPU 0 was asked for; a guest has one",
        "dilaton: AMX was asked for; a guest does not have it",
    ]


def test_a_timer_of_cpu_time_is_told_of_on_the_drive_on_which_computing_takes_none() -> None:
    told = "dilaton: a timer of CPU time was set, for which computing takes no time on the event drive"
    sets = {
        "signal.setitimer(signal.ITIMER_VIRTUAL, 9)": ("event", [told]),
        "signal.setitimer(signal.ITIMER_REAL, 9)": ("event", []),
        "ctypes.CDLL(None).timer_create(2, None, ctypes.create_string_buffer(8))": ("event", [told]),
        "signal.setitimer(signal.ITIMER_PROF, 9)": ("work", []),
    }
    for sets_it, (drive, lines) in sets.items():
        program = f"import ctypes, signal; {sets_it}; raise SystemExit(1)"
        done = execute("--drive", drive, "--", str(PYTHON), "-c", program)
        assert (done.returncode, done.stderr.splitlines()) == (1, lines), sets_it


ASKED_LATE = """
import asyncio
from dilaton.cli.main import main
from dilaton.host.here.guests.guest import Guest

released = Guest.release

async def release(*arguments):
    await released(*arguments)
    await asyncio.sleep(0.3)

Guest.release = release
main()
"""
"""The command line on a host that is slow to say what is to be executed."""


def test_a_host_that_is_slow_to_ask_takes_no_time_of_a_repeatable_program() -> None:
    command = ("exec", "--drive", "event", "--", "date", "+%s.%N")
    expected = dilaton(*command).stdout
    done = subprocess.run(
        [sys.executable, "-c", ASKED_LATE, *command], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == expected
    assert 0 < float(expected) - REPEATABLE_DATE_NS / 1e9 < 1e-3


def test_nothing_is_said_of_what_a_failing_program_did_not_ask_for() -> None:
    done = execute("--", "taskset", "-c", "0", "sh", "-c", ": > /dev/kvmx; exit 3")
    assert (done.returncode, done.stderr) == (3, "")


def test_a_thousand_virtual_seconds_pass_at_once() -> None:
    done = execute(
        "--", "sh", "-c", "read a x < /proc/uptime; sleep 1000; read b x < /proc/uptime; echo ${a%.*} ${b%.*}"
    )
    begin, end = map(int, done.stdout.split())
    assert 1000 <= end - begin <= 1010


def test_a_guest_is_as_nice_as_the_command() -> None:
    command = ["nice", "--adjustment=3", *command_line("exec", "--", "sh", "-c", "echo up; exec sleep 1000")]
    nice = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            kernel = descent(process.pid, 1 + jail.DEPTH)[-1]
            assert os.getpriority(os.PRIO_PROCESS, kernel) == nice
            # Where Linux groups by sessions, of which the guest has its own, that says nothing but within it.
            group = Path(f"/proc/{kernel}/autogroup")
            assert not group.exists() or group.read_text().endswith(f" nice {nice}\n")
        finally:
            process.terminate()


def test_large_output_arrives_whole() -> None:
    size = 32 << 20
    with started("exec", "--", "head", "-c", str(size), "/dev/zero", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        arrived = hashlib.file_digest(process.stdout, "sha256").digest()
    assert arrived == hashlib.sha256(bytes(size)).digest()


def test_on_the_event_drive_a_reader_of_small_pieces_gets_everything() -> None:
    size, arrived = 4 << 20, 0
    command = ["head", "-c", str(size), "/dev/zero"]
    with started("exec", "--drive", "event", "--", *command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), 512):
            arrived += len(piece)
    assert arrived == size


def test_a_reader_that_leaves_ends_the_command() -> None:
    with started("exec", "--", "yes", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_HOST_S) == 128 + signal.SIGPIPE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 1; done"
    arguments = ("exec", "--max-speed", "1", "--", "sh", "-c", script)
    with started(*arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert (process.stdout.read(), process.wait(PATIENCE_HOST_S)) == (f"got {name}\n", 7)


def test_a_shell_at_a_terminal_has_its_size_job_control_and_ctrl_c() -> None:
    with TypedAt("exec", "--", "sh") as shell:
        shell.expect("# ")
        shell.type("stty size; tty\n")
        shell.expect("33 77")
        shell.expect("/dev/pts/")
        shell.expect("# ")
        # No loop in a shell: one that is stopped between vfork and exec of a command never says so.
        shell.type("cat\n")
        shell.type("once\n")
        shell.expect("once\r\nonce")
        shell.type("\x1a")
        shell.expect("Stopped")
        shell.expect("# ")
        shell.type("fg\n")
        shell.expect("cat\r\n")
        shell.type("again\n")
        shell.expect("again\r\nagain")
        shell.type("\x03")
        shell.expect("# ")
        termios.tcsetwinsize(shell.master, (44, 88))
        shell.process.send_signal(signal.SIGWINCH)
        shell.type("sleep 1; stty size\n")
        shell.expect("44 88")
        shell.expect("# ")
        shell.type("exit 5\n")
        shell.expect("exit")
        assert shell.wait() == 5
        assert shell.is_restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_terminal_is_itself_again_after_whatever_ends_us(number: signal.Signals) -> None:
    with TypedAt("exec", "--", "sh", "-c", "trap '' TERM; echo ready; exec sleep 1000") as shell:
        shell.expect("ready")
        assert not shell.is_restored()
        shell.process.send_signal(number)
        shell.wait()
        while not shell.is_restored():
            os.sched_yield()


def test_what_cannot_be_given_is_said_in_words(tmp_path: Path) -> None:
    mistakes = {
        ("--tdf", "fast"): "--tdf: ",
        ("--drive", "steam"): "--drive: ",
        ("--memory", "1"): "--memory: ",
        ("--memory", "1MiB"): "--memory: 1MiB: the memory of a guest must be from 64MiB to 16GiB",
        ("--memory", "17G"): "--memory: 17GiB: the memory of a guest must be from 64MiB to 16GiB",
        ("--seed", "-1"): "--seed: -1: ",
        ("--rw", str(tmp_path / "none")): "--rw: ",
        ("--out", "/proc/none"): "--out: /proc/none: ",
        ("--rw", "/run"): "--rw: /run: a guest has a place of its own there",
        ("-t",): "-t: standard input and output are no terminal",
    }
    for arguments, message in mistakes.items():
        done = execute(*arguments, "--", "true")
        assert done.returncode == 2
        assert done.stderr.startswith(f"dilaton: {message}")
