"""What became of a process is told in words that fit what it measured."""

from __future__ import annotations

from typing import Any

import pytest

from dilaton.run.model import ProcessRecord
from dilaton.run.words import outcome


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"requests": 3, "errors": 1}, "3 requests, 1 error"),
        ({"requests": 0, "requests_per_s": 0.0, "errors": 2, "latency": {}}, "0 requests, 0 requests/s, 2 errors"),
        (
            {"packets_per_s": None, "throughput": None, "latency": {"avg": 0.02, "max": 0.03}, "loss": 0.5},
            "latency 20 ms (to 30 ms), loss 50 %",
        ),
    ],
)
def test_only_what_was_measured_is_told(result: dict[str, Any], words: str) -> None:
    assert outcome(ProcessRecord(name="ask", node="a", argv=["ask"], result=result)) == words
