"""Programs of images: their output is read while they complain, and they end with whoever started them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dilaton.images.store import ImageError
from dilaton.service.images.programs import SAID_BYTES_MAX, output_of
from tests.conftest import environment

PIPE_BYTES = 1 << 16
"""What a pipe holds."""
assert PIPE_BYTES < SAID_BYTES_MAX

READS = """
import sys
from dilaton.service.images.programs import output_of
with output_of(["sh", "-c", "echo $$; exec sleep 1000"], None) as stream:
    print(stream.readline().decode(), flush=True)
    stream.read()
"""


def complaining(status: int) -> list[str]:
    """A program that says more of what is wrong than a pipe holds, then writes what is wanted, and ends like that."""
    said = f"import sys; sys.stderr.write('x' * {PIPE_BYTES} + chr(10) + 'last'); sys.stderr.flush()"
    return [sys.executable, "-c", f"{said}; print('wanted'); sys.exit({status})"]


@pytest.mark.timeout(60)
def test_a_program_that_complains_while_it_writes_is_read_to_its_end() -> None:
    with output_of(complaining(0), None) as stream:
        assert stream.read() == b"wanted\n"


@pytest.mark.timeout(60)
def test_what_a_program_says_last_is_why_it_fails() -> None:
    with pytest.raises(ImageError, match=r"^last$"), output_of(complaining(1), None) as stream:
        stream.read()


@pytest.mark.timeout(60)
def test_a_program_that_never_stops_complaining_is_ended() -> None:
    endless = [sys.executable, "-S", "-c", "import os\nwhile True: os.write(2, b'x' * 1000)"]
    with pytest.raises(ImageError), output_of(endless, None) as stream:
        assert stream.read() == b""


@pytest.mark.timeout(60)
def test_a_program_whose_output_is_not_wanted_any_more_is_ended() -> None:
    with contextlib.suppress(KeyboardInterrupt), output_of(["sh", "-c", "echo $$; exec sleep 1000"], None) as stream:
        number = int(stream.readline())
        raise KeyboardInterrupt
    assert not Path(f"/proc/{number}").exists()


@pytest.mark.timeout(60)
def test_a_program_ends_with_a_reader_that_is_killed() -> None:
    reader = subprocess.Popen([sys.executable, "-c", READS], env=environment(), stdout=subprocess.PIPE)
    assert reader.stdout is not None
    with reader:
        number = int(reader.stdout.readline())
        program = os.pidfd_open(number)
        reader.send_signal(signal.SIGKILL)
    # Whose parent is gone, it is waited for by its file descriptor, which is readable once it has ended.
    assert select.select([program], [], [], 30)[0]
    os.close(program)
