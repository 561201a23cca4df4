"""What a sweep says of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.cli import sweep
from dilaton.run import record as records
from tests.unit.measure.made import Progress, plan

LAB = "name: x\nnodes: {a: }\nrun: [{on: a, exec: 'true'}]\nexpect: [true.exit == 0]\n"


@pytest.mark.parametrize(
    ("progress", "printed", "why"),
    [
        (Progress("failed", "process true on a was killed\nby signal 9"), "", "by signal 9"),
        (
            Progress(events=[{"t_ns": 0, "kind": "skipped", "process": "true", "reason": "late"}]),
            "",
            "not so: true.exit",
        ),
        (None, "dilaton: the program bwrap is not installed\n", "the program bwrap is not installed"),
        (None, "lab.yaml:3:1: nodes: no nodes\n\n", "lab.yaml:3:1: nodes: no nodes"),
        (None, "", "it said nothing"),
    ],
)
def test_why_a_run_did_not_go_well_is_told_in_a_line(
    progress: Progress | None, printed: str, why: str, tmp_path: Path
) -> None:
    run_dir = tmp_path / "0"
    run_dir.mkdir()
    (tmp_path / "0.log").write_text(printed)
    if progress:
        records.write(run_dir, records.make(plan(LAB), progress, run_dir))
    assert sweep._why(run_dir).startswith(why)
