"""Mistakes in `time`: each gets its one line, with the place, the fault and the fix."""

from __future__ import annotations

import pytest

from dilaton.lab import LabError, loads

MISTAKES = [
    (
        "{tdf: automatic}",
        "time.tdf: automatic: the time dilation factor must be a number, such as 10, 0.5 or 1/3, or auto",
    ),
    ("{tdf: auto, auto: {min: 5, max: 2}}", "time.auto.min: 5: is more than max, 2"),
    ("{tdf: auto, auto: {min: 0}}", "time.auto.min: 0: the time dilation factor must be more than 0"),
    ("{tdf: auto, auto: {max: 10, start: 20}}", "time.auto.start: 20: must be up to max, 10"),
    ("{tdf: auto, auto: {min: 2, start: 1, max: 10}}", "time.auto.start: 1: must be from min, 2, up to max, 10"),
    ("{tdf: auto, auto: {epoch: 0s}}", "time.auto.epoch: 0s: must be more than 0"),
    ("{tdf: auto, auto: {epoch: 5}}", "time.auto.epoch: 5: an epoch needs a unit: write 5ms (or ns, us, s, min, h)"),
    (
        "{tdf: auto, auto: {target: 0%}}",
        "time.auto.target: 0%: a target is a busy fraction, more than 0% and less than 100%",
    ),
    (
        "{tdf: auto, auto: {target: 0}}",
        "time.auto.target: 0: a target is a busy fraction, more than 0% and less than 100%",
    ),
    (
        "{tdf: auto, auto: {target: 120%}}",
        "time.auto.target: 120%: a target is a busy fraction, more than 0% and less than 100%",
    ),
    (
        "{tdf: auto, auto: {target: 0.7}}",
        "time.auto.target: 0.7: a target needs a percent sign: write 70% if a ratio was meant, or 0.7%",
    ),
    ("{tdf: auto, auto: {policy: late}}", "time.auto.policy: late: not a policy; did you mean lateness?"),
    (
        "{clocks: apart}",
        "time.clocks: apart: clocks run apart on the wall drive alone; write drive: wall, not work",
    ),
    (
        "{clocks: alone}",
        "time.clocks: alone: not a way for clocks to run; use together or apart",
    ),
    (
        "{on_violation: stop}",
        "time.on_violation: stop: not what can follow a violation; use continue, hold, fail or retry",
    ),
    (
        "{tdf: auto, drive: event}",
        "time.tdf: auto: the event drive's CPU takes no time, so that there is no load to follow; use work or wall",
    ),
    (
        "{on_violation: fail, drive: event}",
        "time.on_violation: fail: the event drive's CPU takes no time, so that there is no load to follow; "
        "use work or wall",
    ),
]


IN_VAIN = [
    (
        "{tdf: 5, auto: {max: 9, target: 70%}}",
        "the tdf is 5 and does not follow the load; write tdf: auto, or remove this",
    ),
    ("{auto: {max: 9}}", "the tdf is 1 and does not follow the load; write tdf: auto, or remove this"),
    (
        "{tdf: 5, on_violation: fail, auto: {max: 9, epoch: 1s, start: 2}}",
        "the tdf is 5 and does not follow the load; write tdf: auto, or remove max, start",
    ),
]


@pytest.mark.parametrize(("time", "message"), IN_VAIN)
def test_how_a_tdf_follows_the_load_is_refused_beside_one_that_does_not(time: str, message: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(f"name: x\nnodes: {{a: }}\ntime: {time}\n", "lab.yaml")
    assert str(caught.value) == f"lab.yaml:3:{7 + time.index('auto: {')}: time.auto: {message}"


def test_a_tdf_that_is_set_for_a_run_leaves_what_the_lab_says_of_auto() -> None:
    lab = loads("name: x\nnodes: {a: }\ntime: {tdf: auto, auto: {max: 9}}\n", "lab.yaml", [("time.tdf", "2")])
    assert (lab.time.tdf, lab.time.auto.max) == (2, 9)


def test_a_tdf_that_stays_is_watched_as_auto_says_where_violations_have_consequences() -> None:
    lab = loads("name: x\nnodes: {a: }\ntime: {tdf: 5, on_violation: fail, auto: {epoch: 1s}}\n", "lab.yaml")
    assert lab.time.auto.epoch_ns == 10**9


@pytest.mark.parametrize(("time", "line"), MISTAKES)
def test_a_mistake_gets_its_line(time: str, line: str) -> None:
    value = line.split(": ")[1]
    with pytest.raises(LabError) as caught:
        loads(f"name: x\nnodes: {{a: }}\ntime: {time}\n", "lab.yaml")
    assert str(caught.value) == f"lab.yaml:3:{7 + time.index(f': {value}') + 2}: {line}"
