"""No more runs start at once than there are cores, whatever places there are: the others wait in the queue."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from dilaton.server.app import opened
from dilaton.server.database.actions import now_ms
from dilaton.server.database.tables import RunRow
from dilaton.server.runs import keeper, shares
from dilaton.server.serve import make_owner
from dilaton.server.settings import Settings
from dilaton.server.state import State
from tests.unit.server.serving import run_row


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """A server with twenty places, where two runs may start at once, and five wait; none is launched."""
    monkeypatch.setattr(keeper, "STARTS_AT_ONCE", 2)
    state = opened(Settings(tmp_path, at_once=20))
    make_owner(state)
    with state.store.writing() as session:
        session.add_all(run_row(f"run{number}", "queued", needs={}) for number in range(5))
    return state


def becomes(state: State, run: str, what: str, **others: object) -> None:
    with state.store.writing() as session:
        row = session.scalars(select(RunRow).where(RunRow.identity == run)).one()
        for name, value in {"state": what, **others}.items():
            setattr(row, name, value)


def begun(state: State) -> list[str]:
    return state.keeper._next()


def test_the_next_one_starts_when_one_has_started(state: State) -> None:
    assert begun(state) == ["run0", "run1"]
    assert begun(state) == []
    becomes(state, "run1", "running")
    assert begun(state) == ["run2"]
    becomes(state, "run0", "refused")
    becomes(state, "run2", "held")
    assert begun(state) == ["run3", "run4"]


def test_one_that_starts_for_long_keeps_no_other_from_it(state: State) -> None:
    assert begun(state) == ["run0", "run1"]
    assert state.keeper._until_change_s() == pytest.approx(shares.START_MS_MAX / 1000, abs=10)
    becomes(state, "run0", "starting", started_ms=now_ms() - shares.START_MS_MAX)
    assert begun(state) == ["run2"]
