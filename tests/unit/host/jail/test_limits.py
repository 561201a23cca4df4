"""Limits of a guest's processes."""

from __future__ import annotations

import pytest

from dilaton.host.here.jail import limits


@pytest.mark.parametrize("release", ["5.14.0", "5.15.0-91-generic", "6.1.0-42-amd64", "10.0"])
def test_processes_are_limited_where_the_host_counts_those_of_a_jail_alone(release: str) -> None:
    assert limits.processes(1 << 30, release) == (1 << 15) + limits.PROCESSES_BESIDE


@pytest.mark.parametrize("release", ["5.10.0-35-amd64", "4.19.0", "unknown", ""])
def test_elsewhere_they_are_not(release: str) -> None:
    assert limits.processes(1 << 30, release) is None
