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

from tests.unit.server.runs.test_catalogue import fill
from tests.unit.server.serving import served

QUESTIONS = {
    "the newest 50": "/runs?count=50",
    "the newest 200": "/runs?count=200",
    "50 in the middle": "/runs?count=50&before={middle}",
    "50 that failed": "/runs?count=50&state=failed",
    "all of one lab": "/runs?lab={lab}",
    "50 by a name": "/runs?count=50&name=lab%2042",
    "a name that none has": "/runs?name=nowhere",
}


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
                print(f"{who:18} {words:20} median {middle:6.1f} ms, 99 % within {worst:6.1f} ms")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
