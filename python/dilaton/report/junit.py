"""A run as a report of JUnit, which CI servers show: a case for each process, each expectation, and the verdict.

There is no standard but what servers read: a `testsuite` with `testcase`s, of which those that have not passed have a
`failure`, as Ant's JUnit task has written it. Times are the virtual ones, in seconds.

Where something failed, the suite's output is the end of all that happened (`run/timeline.py`), so that a server's page
tells what came before.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from xml.etree import ElementTree

from dilaton.measure.expect import quantity
from dilaton.run.record.model import BELIEVED
from dilaton.run.record.record import Record
from dilaton.run.record.words import outcome
from dilaton.run.timeline import Moment

LINES_MAX = 1000
"""Of what happened; servers keep reports in memory."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to say (section 2.2)."""


def junit(record: Record, happened: Iterable[Moment] = (), *, strict: bool) -> str:
    """The report as text.

    Args:
        record: Of the run.
        happened: In it; its end is told where something failed.
        strict: Whether a verdict other than `confirmed` or `valid` is a failure; else it is only said.
    """
    suite = ElementTree.Element("testsuite", name=_clean(record.lab), time=f"{record.time.virtual_s:.9f}")
    run = _case(suite, "run", "the run finishes")
    if record.state != "finished":
        _fail(run, f"{record.state}: {record.reason or 'it did not come to its end'}")
    for process in record.processes:
        ran_s = (process.end_s - process.start_s) if process.start_s is not None and process.end_s is not None else None
        case = _case(suite, "process", f"{process.node}/{process.name}", ran_s)
        if not process.expected:
            _fail(case, process.reason or outcome(process))
    for check in record.checks:
        case = _case(suite, "expect", check.text)
        if not check.passed:
            _fail(case, f"measured: {quantity(check.text, check.value)}")
    if record.verdict is not None:
        case = _case(suite, "fidelity", "the results can be believed")
        said = "; ".join([record.verdict.level, *(f"{each.what}: {each.advice}" for each in record.verdict.reasons)])
        if strict and record.verdict.level not in BELIEVED:
            _fail(case, said)
        else:
            ElementTree.SubElement(case, "system-out").text = _clean(said)
    failures = len(suite.findall("testcase/failure"))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failures))
    suite.set("errors", "0")
    if failures and (last := deque(map(str, happened), maxlen=LINES_MAX)):
        ElementTree.SubElement(suite, "system-out").text = _clean("\n".join(last))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, group: str, name: str, time_s: float | None = None) -> ElementTree.Element:
    case = ElementTree.SubElement(suite, "testcase", classname=f"{suite.get('name')}.{group}", name=_clean(name))
    if time_s is not None:
        case.set("time", f"{time_s:.9f}")
    return case


def _fail(case: ElementTree.Element, message: str) -> None:
    ElementTree.SubElement(case, "failure", message=_clean(message))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
