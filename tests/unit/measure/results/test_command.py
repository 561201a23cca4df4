"""The program is recognised behind wrappers that only change how it runs."""

from __future__ import annotations

import pytest

from dilaton.measure.results import is_parsed
from dilaton.measure.results.command import unwrap


@pytest.mark.parametrize(
    "command",
    [
        "ping -c 3 b",
        "/usr/bin/ping -c 3 b",
        "busybox ping -c 3 b",
        "env ping -c 3 b",
        "env -i -u HOME LANG=C A=b=c ping -c 3 b",
        "timeout 5 ping -c 3 b",
        "timeout --preserve-status -k 1 -s INT 5s ping -c 3 b",
        "nice -n 10 ping -c 3 b",
        "nice -10 ping -c 3 b",
        "stdbuf -oL ping -c 3 b",
        "stdbuf -o L -e 0 ping -c 3 b",
        "env -- A=1 timeout 5 nice stdbuf -oL ping -c 3 b",
    ],
)
def test_wrappers_are_seen_through(command: str) -> None:
    assert unwrap(command.split()) == ("ping", ["-c", "3", "b"])


@pytest.mark.parametrize("command", ["env", "timeout 5", "nice -n 10", "sh -c ping", "sleep 1", "sudo ping b"])
def test_what_is_no_wrapper_or_wraps_nothing_stands_for_itself(command: str) -> None:
    words = command.split()
    assert unwrap(words) == (words[0], words[1:])
    assert not is_parsed(words)
