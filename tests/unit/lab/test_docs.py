"""The reference of the lab language names every field."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.lab.model import Auto, Guest, Lab, Process, Ready, Time
from dilaton.lab.parts.addressing import Addressing, PointToPointPool
from dilaton.lab.parts.expect import METRICS
from dilaton.lab.parts.fidelity import Fidelity
from dilaton.lab.parts.impairments import Chance, Delay, GilbertElliott, Loss, Queue, Reorder, StateLoss, Trace
from dilaton.lab.parts.links import Change, Direction, Link
from dilaton.lab.parts.measure import Capture, Measure
from dilaton.lab.parts.nodes import Node
from dilaton.lab.parts.routing import Routing
from dilaton.lab.text.part import Part

REFERENCE = (Path(__file__).resolve().parents[3] / "docs" / "lab-language.md").read_text()


@pytest.mark.parametrize(
    "part",
    [
        *(
            Lab,
            Time,
            Auto,
            Node,
            Guest,
            Process,
            Ready,
            Routing,
            Addressing,
            PointToPointPool,
            Measure,
            Capture,
            Fidelity,
        ),
        *(Link, Direction, Change, Queue, Trace, Delay, Loss, GilbertElliott, StateLoss, Chance, Reorder),
    ],
)
def test_every_field_is_documented(part: type[Part]) -> None:
    names = [str(field.validation_alias or name) for name, field in part.model_fields.items()]
    assert [name for name in names if f"`{name}" not in REFERENCE] == []


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_documented(name: str) -> None:
    assert f"`{name}`" in REFERENCE
