"""`dilaton capture`: what passes an interface of a run that goes on, while it passes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from dilaton.cli.errors import BadInputError, FailedError, complain, failing, refusing
from dilaton.cli.output import visible
from dilaton.cli.steering.attach import attend
from dilaton.host.distribution import here
from dilaton.host.errors import GuestError, HostLacksError
from dilaton.measure.packets.lines import lines
from dilaton.measure.packets.pcapng import CaptureError
from dilaton.plan.model import Plan
from dilaton.run.control.answers import SHOW
from dilaton.run.control.errors import ControlError
from dilaton.run.control.following import NotCapturedError, capture_command
from dilaton.run.control.requests import Client
from dilaton.run.control.session_client import reached, session
from dilaton.run.files.outputs import read_output
from dilaton.service.catalogue import find

WIRESHARK = ("wireshark", "-k", "-i", "-")
STDOUT, STDERR = 1, 2


@refusing(ControlError, NotCapturedError)
@failing(OSError, CaptureError)
def follow(
    run: str,
    place: str,
    pcap_filter: Sequence[str],
    to: str | None,
    snaplen: int,
    count: int | None,
    *,
    wireshark: bool,
) -> int:
    """Captures until Ctrl-C, `count` packets, or the end of the run; returns the exit status.

    Args:
        run: The run.
        place: NODE or NODE:INTERFACE.
        pcap_filter: Words of a filter, as for tcpdump.
        to: A file to write, `-` for standard output; None: a line for each packet is printed.
        snaplen: Bytes of a packet that are kept at most.
        count: How many packets at most.
        wireshark: Whether Wireshark is to show them.

    Raises:
        BadInputError: there is no such run, node, interface or filter.
        HostLacksError: there is no Wireshark.
        FailedError: the run has ended before, or something cannot be written.
    """
    run_dir = find(run)
    check_target(to, wireshark=wireshark)
    with Client(run_dir) as client:
        date_ns = client.request(SHOW)["date_ns"]
    if date_ns is None:
        raise BadInputError(f"{run_dir}: it has not begun yet")
    plan = Plan.model_validate_json(read_output(run_dir / "plan.json"))
    node, argv = capture_command(plan, place, date_ns, " ".join(pcap_filter) or None, snaplen, count)
    with written(to, wireshark) as stdout:
        return _captured(run_dir, node, argv, stdout)


def check_target(to: str | None, *, wireshark: bool) -> None:
    """Looks whether a capture can go there, as `follow` has it.

    Raises:
        BadInputError: it cannot.
    """
    if wireshark and to is not None:
        raise BadInputError("--wireshark: it shows the packets; leave out -w, and let it save them")
    if to == "-" and os.isatty(STDOUT):
        raise BadInputError("-w -: packets are no text for a terminal; write to a file, or into a program: -w - | …")


@contextlib.contextmanager
def written(to: str | None, wireshark: bool) -> Iterator[int]:
    """A descriptor that takes a capture, which goes where `follow` is told."""
    if to == "-":
        yield STDOUT
    elif to is not None:
        with Path(to).open("wb") as file:
            yield file.fileno()
    elif wireshark:
        if not shutil.which(WIRESHARK[0]):
            raise HostLacksError(f"{WIRESHARK[0]}: it is not installed", here().fix([(WIRESHARK[0], WIRESHARK[0])]))
        # In a session of its own, so that Ctrl-C ends the capture and leaves what it shows.
        with subprocess.Popen(WIRESHARK, stdin=subprocess.PIPE, start_new_session=True) as shown:
            assert shown.stdin
            yield shown.stdin.fileno()
            shown.stdin.close()
    else:
        read, write = os.pipe()
        with os.fdopen(read, "rb", buffering=0) as packets, _printing(packets, write):
            yield write


@contextlib.contextmanager
def _printing(packets: BinaryIO, write: int) -> Iterator[None]:
    """Prints what comes until the other end of the pipe is closed, which is done at the end."""
    import threading

    failed: list[Exception] = []

    def show() -> None:
        try:
            for line in lines(packets):
                print(visible(line), flush=True)
        except (OSError, CaptureError) as error:
            failed.append(error)
            packets.close()

    printer = threading.Thread(target=show)
    printer.start()
    try:
        yield
    finally:
        os.close(write)
        printer.join()
    if failed and not isinstance(failed[0], BrokenPipeError):
        raise failed[0]


def _captured(run_dir: Path, node: str, argv: Sequence[str], stdout: int) -> int:
    async def attended() -> int:
        async with session(reached(run_dir), node, argv) as begun:
            ending = await attend(begun, None, streams=(None, stdout, STDERR))
        if ending.reason:
            complain(ending.reason)
        return ending.status

    try:
        return asyncio.run(attended())
    except GuestError as error:
        raise FailedError(f"{run_dir}: the run has ended") from error
