"""What a lab asks of the fidelity of its runs: what can be written, and what each mistake is told."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dilaton.lab import LabError, loads
from dilaton.lab.parts.fidelity import Confirm
from dilaton.plan.compile import compile as compile_plan

LAB = "name: x\nnodes: {{a: }}\nfidelity: {}\n"

ASKED = [
    ("confirm", True, Fraction(1, 20)),
    ("{confirm: true}", True, Fraction(1, 20)),
    ("{confirm: true, tolerance: 2.5%}", True, Fraction(1, 40)),
    ("{confirm: suspect}", "suspect", Fraction(1, 20)),
    ("{}", False, Fraction(1, 20)),
]

MISTAKES = [
    ("confirmed", "fidelity: confirmed: not what can be asked of fidelity; write confirm, or a mapping of fields"),
    ("[confirm]", "fidelity: must be a mapping of fields, not a list; write for example fidelity: {confirm: true}"),
    ("{confirm: maybe}", "fidelity.confirm: maybe: must be true, false or suspect"),
    (
        "{tolerance: 5}",
        "fidelity.tolerance: 5: a tolerance needs a percent sign: write 5%",
    ),
    ("{tolerance: 0%}", "fidelity.tolerance: 0%: a tolerance is more than 0% and less than 100%"),
    ("{tolerance: 100%}", "fidelity.tolerance: 100%: a tolerance is more than 0% and less than 100%"),
    ("{tolerance: -1%}", "fidelity.tolerance: -1%: a tolerance cannot be negative"),
    ("{lateness: 5}", "fidelity.lateness: 5: a lateness needs a unit: write 5ms (or ns, us, s, min, h)"),
    ("{confrim: true}", "fidelity.confrim: unknown field; did you mean confirm?"),
]


@pytest.mark.parametrize(("text", "confirm", "tolerance"), ASKED)
def test_what_is_asked_is_read(text: str, confirm: Confirm, tolerance: Fraction) -> None:
    asked = loads(LAB.format(text), "lab.yaml").fidelity
    assert (asked.confirm, asked.tolerance) == (confirm, tolerance)


@pytest.mark.parametrize(
    ("text", "of_believed", "of_others"),
    [("{}", False, False), ("confirm", True, True), ("{confirm: suspect}", False, True)],
)
def test_which_runs_are_confirmed(text: str, of_believed: bool, of_others: bool) -> None:
    asked = loads(LAB.format(text), "lab.yaml").fidelity
    assert asked.is_proof_due(is_believed=True) == of_believed
    assert asked.is_proof_due(is_believed=False) == of_others


def test_the_lateness_that_a_lab_does_not_mind_is_read_and_planned() -> None:
    asked = loads(LAB.format("{lateness: 1.5ms}"), "lab.yaml")
    assert asked.fidelity.lateness_ns == 1_500_000
    assert compile_plan(asked).time.lateness_ns == 1_500_000
    assert compile_plan(loads(LAB.format("{}"), "lab.yaml")).time.lateness_ns is None


@pytest.mark.parametrize(("text", "line"), MISTAKES)
def test_a_mistake_gets_its_line(text: str, line: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(LAB.format(text), "lab.yaml")
    assert str(caught.value).partition(": ")[2] == line
