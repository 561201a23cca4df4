"""The computed distribution tables are those that tc uses, up to rounding."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from dilaton.lab.beside.files import read_table
from dilaton.plan.links.tables import ENTRIES, table

FILES = [path for path in (Path("/usr/lib/tc"), Path("/usr/lib/x86_64-linux-gnu/tc")) if path.is_dir()]
"""Where iproute2 keeps its tables."""


@pytest.mark.skipif(not FILES, reason="iproute2's tables are not installed here")
@pytest.mark.parametrize("name", ["normal", "pareto", "paretonormal"])
def test_each_quantile_lies_between_the_neighbours_of_the_one_that_tc_has(name: str) -> None:
    theirs, own = read_table(f"{name}.dist", str(FILES[0])), table(name)
    assert len(theirs) == len(own) == ENTRIES
    for index in range(1, ENTRIES - 1):
        assert own[index - 1] - 2 <= theirs[index] <= own[index + 1] + 2


@pytest.mark.parametrize("name", ["uniform", "normal", "pareto", "paretonormal"])
def test_tables_ascend_and_the_symmetric_ones_have_mean_zero(name: str) -> None:
    values = table(name)
    assert all(earlier <= later for earlier, later in itertools.pairwise(values))
    if name in ("uniform", "normal"):
        assert sum(values) == 0
