"""A few cycles of nodes that go off and boot, as `./dev reboots` does a hundred of."""

from __future__ import annotations

from pathlib import Path

from tests.host.reboots import run

CYCLES = 5


def test_boots_leave_nothing_behind_and_repeat_to_the_byte(tmp_path: Path) -> None:
    first, second = (run(CYCLES, seed=3, directory=tmp_path / name) for name in ("first", "second"))
    assert first.held == [first.held[0]] * (CYCLES + 1)
    assert first.left == []
    assert first.kernels == CYCLES
    assert second.output == first.output
    answers = [line for line in first.output["nodes/a/to-c.stdout"].decode().splitlines() if "time=" in line]
    assert len(answers) == 4 * (CYCLES + 1)
    assert {line.split("time=")[1] for line in answers[1:]} == {"10.0 ms"}
