"""Of many runs as many are read as are shown, by as few queries as of one, whoever asks and whatever they look for."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

import pytest
from sqlalchemy import event

from dilaton.server.access.callers import make_person
from dilaton.server.database.tables import RunRow
from tests.unit.server.access.test_queries import asked
from tests.unit.server.serving import LAB, Served, run_row, served

RUNS = 3000


def fill(server: Served, runs: int, lab: str) -> None:
    """Makes runs of thirty people, of which one in a hundred has failed and the first ten are of one lab."""
    with server.state.store.writing() as session:
        people = [f"person{number}" for number in range(30)]
        for person in people:
            make_person(session, person)
        session.add_all(
            run_row(
                f"{number:016x}",
                "failed" if number % 100 == 0 else "finished",
                people[number % 30],
                lab=lab if number < 10 else None,
                name=f"lab {number % 97}",
                text=LAB * 20,
                created_ms=number,
                started_ms=number,
                ended_ms=number + 1000,
            )
            for number in range(runs)
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as found:
        fill(found, RUNS, found.client().keep())
        yield found


@contextlib.contextmanager
def read() -> Iterator[Counter[str]]:
    """How many runs are read meanwhile."""
    found: Counter[str] = Counter()

    def note(*_: object) -> None:
        found["runs"] += 1

    event.listen(RunRow, "load", note)
    try:
        yield found
    finally:
        event.remove(RunRow, "load", note)


@pytest.mark.parametrize("person", ["owner", "person7"])
@pytest.mark.parametrize(
    ("question", "most"),
    [
        ("count=50", 50),
        ("count=50&before=1500", 50),
        ("count=20&state=failed", 20),
        ("count=50&name=LAB%2042", 50),
        ("name=nowhere", 0),
    ],
)
def test_as_many_runs_are_read_as_are_shown(server: Served, person: str, question: str, most: int) -> None:
    client = server.client(person)
    client.api("GET", "/runs?count=1")
    with asked(server) as statements, read() as rows:
        found = client.api("GET", f"/runs?{question}")
    assert len(found) == rows["runs"] <= most
    # Beside those of who keeps runs, who looks into the queue whenever something was written.
    of_list = [one for one in statements if "DISTINCT runs.folder" in one or "runs.created_ms" in one]
    assert len(of_list) == 2, of_list
    assert not any("runs.text" in one for one in of_list), "nobody needs the texts of their labs"


def test_runs_are_found_by_any_part_of_the_name_of_their_lab(server: Served) -> None:
    owner = server.client()
    found = owner.api("GET", "/runs?name=LAB%204")
    assert {run["name"] for run in found} == {"lab 4", *(f"lab 4{digit}" for digit in range(10))}
    assert owner.api("GET", "/runs?name=lab%25") == [], "a sign of a pattern is itself"
    assert owner.api("GET", "/runs?name=lab_4") == []
    assert {run["person"] for run in server.client("person7").api("GET", "/runs?name=lab")} == {"person7"}
