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


CONSOLE = """\
do_syscall_stub: syscall 9 failed, return value = 0xfffffffffffffff4, expected return value = 0x553ab56000
UML ran out of memory on the host side! This can happen due to a memory limitation or vm.max_map_count has been reached.
"""
NEWER = "syscall_stub_dump_error : stub syscall type 1 failed, return value = 0xfffffffffffffff4\n"
OTHER = "syscall_stub_dump_error : stub syscall type 1 failed, return value = 0xfffffffffffffff2\n"


def test_programs_whose_memory_the_host_did_not_map_are_counted_by_guest(tmp_path: Path) -> None:
    (tmp_path / "guest").mkdir()
    for name, text in {"a": CONSOLE, "b": OTHER + 2 * NEWER, "c": OTHER}.items():
        (tmp_path / "guest" / f"{name}.log").write_text(text)
    assert seen_of(tmp_path, []).shortages == (("a", "mappings", 1), ("b", "mappings", 2))


def test_a_run_that_measures_nothing_has_nothing_beside(tmp_path: Path) -> None:
    assert seen_of(tmp_path, []) == NOTHING_BESIDE
