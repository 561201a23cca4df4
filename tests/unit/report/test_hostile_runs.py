"""A run directory that somebody else wrote becomes a page without markup of theirs, or an error in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dilaton
from dilaton.report.page import write_report
from dilaton.run.record.record import RecordError
from tests.unit.measure import made
from tests.unit.report.test_page import Page

EVIL = "\x1b]0;PWN\x07<script>alert(1)</script><img src=x onerror=alert(1)>"
DEEP = "[" * 60_000


def event(**fields: Any) -> str:
    return json.dumps({"kind": "started", "t_ns": 1, **fields}) + "\n"


FILES = {
    "a deep record": ("run.json", DEEP),
    "a deep plan": ("plan.json", DEEP),
    "deep events": ("events.jsonl", DEEP + "\n"),
    "events that are none": ("events.jsonl", "[1]\n3\n"),
    "an event of nothing": ("events.jsonl", event()),
    "an event with markup": ("events.jsonl", event(node=EVIL, process=EVIL, pid=EVIL)),
    "an event of an odd kind": ("events.jsonl", event(kind=EVIL, t_ns=10**30)),
    "faults that say nothing": ("events.jsonl", event(kind="began") + event(kind="undone", fault=[{}])),
    "a fault with markup": ("events.jsonl", event(kind="began", fault=EVIL, what=EVIL)),
    "a clock of no numbers": ("clock.csv", "host_s,virtual_s,tdf\n" + "nan,inf,-1\n" * 5),
}

RECORDS: dict[str, dict[str, Any]] = {
    "a lab with markup": {"lab": EVIL},
    "a lab that leads out": {"lab": "../../../../tmp/dilaton-escaped"},
    "a reason with markup": {"state": "failed", "reason": EVIL},
    "processes with markup": {"process": {"name": "../../../../etc/passwd", "node": EVIL, "argv": [EVIL]}},
    "results of the wrong kind": {"process": {"result": {"throughput": EVIL, "sent_throughput": [], "rtt": EVIL}}},
    "requests of the wrong kind": {"process": {"result": {"requests": EVIL, "latency": EVIL}}},
}


def check(path: Path) -> None:
    """Makes the page: without tags of others, or not at all, and says why."""
    try:
        text = write_report(dilaton.load(path), with_figures=False).read_text()
    except RecordError as error:
        assert str(path) in str(error)
        return
    assert not [tag for tag, _ in Page(text).tags if tag in {"script", "img"}]


@pytest.mark.parametrize(("name", "contents"), FILES.values(), ids=FILES)
def test_a_hostile_file_of_a_run_is_told_or_shown_as_text(name: str, contents: str, tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    (path / name).write_text(contents)
    check(path)


@pytest.mark.parametrize("fields", RECORDS.values(), ids=RECORDS)
def test_a_hostile_record_is_told_or_shown_as_text(fields: dict[str, Any], tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    record = json.loads((path / "run.json").read_text())
    for process in record["processes"]:
        process |= fields.get("process", {})
    record |= {name: value for name, value in fields.items() if name != "process"}
    (path / "run.json").write_text(json.dumps(record))
    check(path)
