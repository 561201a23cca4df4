"""What was seen of a run beside its clock."""

from __future__ import annotations

from pathlib import Path

from dilaton.host.messages import CaptureEnded, SamplingEnded, Started
from dilaton.run.record.observation import NOTHING_BESIDE, seen_of


def test_what_ended_before_the_run_is_seen_with_its_reason(tmp_path: Path) -> None:
    seen = seen_of(
        tmp_path,
        [
            Started(t_ns=0, node="a", process="p", pid=2),
            CaptureEnded(t_ns=1, node="a", interface="eth0", reason="full"),
            SamplingEnded(t_ns=2, table="tcp", reason="no space"),
        ],
    )
    assert seen.captures_ended == (("a:eth0", "full"),)
    assert seen.samplings_ended == (("tcp", "no space"),)


def test_a_run_that_measures_nothing_has_nothing_beside(tmp_path: Path) -> None:
    assert seen_of(tmp_path, []) == NOTHING_BESIDE
