"""The names of the package, which are not imported before they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dilaton


def test_names_that_are_not_imported_yet_are_completed_and_told() -> None:
    script = "import dilaton; print('pandas' in __import__('sys').modules, set(dilaton.__all__) <= set(dir(dilaton)))"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "False True\n"
    with pytest.raises(AttributeError, match=r"no attribute up; it has AsyncRun, .*, start, start_async$"):
        dilaton.up  # noqa: B018 - is looked for


def test_every_name_is_where_it_is_said_to_be() -> None:
    for name in dilaton.__all__:
        assert getattr(dilaton, name) is not None, name
