"""How long a server with many finished runs takes to list and search them, in milliseconds of the host.

    PYTHONPATH=python:. .venv/bin/python benches/server_catalogue.py [RUNS [ROUNDS]]

Prints the median and the 99th percentile of each question, asked over HTTP, one after the other.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from dilaton.server.access.callers import make_person
from dilaton.server.database.tables import RunRow
from tests.unit.server.serving import LAB, Served, served

QUESTIONS = {
    "the newest 50": "/runs?count=50",
    "the newest 200": "/runs?count=200",
    "50 in the middle": "/runs?count=50&before={middle}",
    "50 that failed": "/runs?count=50&state=failed",
    "all of one lab": "/runs?lab={lab}",
}


def fill(server: Served, runs: int, lab: str) -> None:
    """Makes runs of thirty people, of which one in a hundred has failed and the first ten are of one lab."""
    with server.state.store.writing() as session:
        people = [f"person{number}" for number in range(30)]
        for person in people:
            make_person(session, person)
        session.add_all(
            RunRow(
                identity=f"{number:016x}",
                folder=f"/home/{people[number % 30]}",
                person=people[number % 30],
                lab=lab if number < 10 else None,
                version=1,
                name=f"lab {number % 97}",
                text=LAB * 20,
                asked={},
                state="failed" if number % 100 == 0 else "finished",
                created_ms=number,
                started_ms=number,
                ended_ms=number + 1000,
            )
            for number in range(runs)
        )


def main(runs: int = 10_000, rounds: int = 100) -> None:
    """Measures."""
    with tempfile.TemporaryDirectory() as directory, served(Path(directory)) as server:
        boss = server.client()
        lab = boss.keep()
        fill(server, runs, lab)
        for who, client in (("an administrator", boss), ("one of thirty", server.client("person7"))):
            for words, question in QUESTIONS.items():
                took = []
                for _ in range(rounds):
                    began = time.perf_counter()
                    client.api("GET", question.format(middle=runs // 2, lab=lab))
                    took.append((time.perf_counter() - began) * 1000)
                middle, worst = statistics.median(took), statistics.quantiles(took, n=100)[98]
                print(f"{who:18} {words:18} median {middle:6.1f} ms, 99 % within {worst:6.1f} ms")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
