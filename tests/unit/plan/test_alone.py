"""The plan of a command, which is written without the plan's models, is one."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest

from dilaton.plan.alone import Alone
from dilaton.plan.bind import Bind
from dilaton.plan.model import Plan


@pytest.mark.parametrize("max_speed", [None, Fraction(1, 2)])
def test_it_is_a_whole_plan_that_says_everything(max_speed: Fraction | None) -> None:
    alone = Alone("work", Fraction(5, 2), max_speed, 3, 2**30, [Bind("/srv", writable=True)])
    assert Plan.model_validate(alone.plan()).model_dump(mode="json") == alone.plan()


def test_a_command_starts_without_the_models_of_labs_and_plans() -> None:
    # They take longer to import than all else that happens before a guest boots.
    code = "import sys, dilaton.cli.runs.exec; sys.exit('pydantic' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
