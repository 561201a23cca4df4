"""Words for the errors that pydantic finds in a lab."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from dilaton.lab.errors import Path
from dilaton.lab.model import Lab
from dilaton.lab.text.syntax import did_you_mean

KEY = "[key]"
"""How pydantic marks, at the end of a path, that a key of a mapping is meant, not its value."""

_SHAPES = {
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "dict_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
}
"""What is wanted where the shape of the YAML is wrong, by pydantic's type of error."""

_EXAMPLES: dict[str | int, str] = {
    "name": "name: dumbbell",
    "nodes": "nodes: {a: {}, b: {}}",
    "links": 'links: ["a -- b"]',
    "run": "run: [{on: a, exec: ping -c 3 b}]",
    "expect": "expect: [ping.loss == 0%]",
    "endpoints": 'endpoints: ["a:eth0", "b:eth0"]',
    "on": "on: a",
    "exec": "exec: ping -c 3 b",
    "ready": "ready: {tcp: 5201}",
    "disk": "disk: {fixed: {read_latency: 500us, write_latency: 800us}}",
    "time": "time: {tdf: 10}",
    "measure": "measure: {interfaces: 100ms}",
    "fidelity": "fidelity: {confirm: true}",
    "capture": 'capture: ["a:eth0"]',
    "queue": "queue: {limit: 1bdp}",
    "gemodel": "gemodel: {p: 1%, r: 10%}",
    "state": "state: {p13: 1%, p31: 50%}",
    "trace": "trace: {schedule: [[0s, 10Mbit], [5s, 2Mbit]]}",
    "a_to_b": "a_to_b: {rate: 10Mbit}",
    "b_to_a": "b_to_a: {rate: 10Mbit}",
    "env": "env: {LANG: C}",
    "guests": "guests: per-node",
    "sysctls": "sysctls: {net.ipv4.tcp_sack: 0}",
}
"""How a field is written, by its name."""

_EXAMPLES_IN_FAULTS = _EXAMPLES | {
    "disk": "disk: {node: db1, errors: 5%}",
    "clock": "clock: {node: db1, jump: +2s}",
    "cpu": "cpu: {node: web, to: 0.1}",
    "memory": "memory: {node: db1, leave: 16MiB}",
    "load": "load: {from: client, to: web, http: 100/s}",
}
"""The same, where a field of a fault has the name of another one."""


def message(detail: ErrorDetails) -> str:
    """What is wrong, and what would be right."""
    kind = detail["type"]
    if not detail["loc"]:
        return f"a lab is a mapping of fields, such as name: and nodes:, not {_shape(detail['input'])}"
    # What is called nodes in a topology is a number.
    shown = () if detail["loc"][0] == "topology" else reversed(detail["loc"])
    examples = _EXAMPLES_IN_FAULTS if detail["loc"][0] == "faults" else _EXAMPLES
    name = next((part for part in shown if part in examples), None)
    example = f"; write for example {examples[name]}" if name is not None else ""
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    if kind == "missing":
        return f"missing{example}"
    if kind == "extra_forbidden":
        known = _fields_at(detail["loc"][:-1])
        return "unknown field" + (did_you_mean(str(detail["loc"][-1]), known) or f"; known here: {', '.join(known)}")
    if kind == "greater_than":
        return f"must be more than {detail['ctx']['gt']}"
    if kind in _SHAPES:
        return f"must be {_SHAPES[kind]}, not {_shape(detail['input'])}{example}"
    return detail["msg"]


def _shape(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else f"{value!r}"


def _fields_at(path: Path) -> list[str]:
    """The fields that users may write in the part of a lab at `path`."""
    model: type[BaseModel] = Lab
    is_key = False
    for step in path:
        if isinstance(step, int) or is_key:
            is_key = False
            continue
        annotation = _annotations(model)[step]
        is_key = get_origin(annotation) is dict
        model = _model_in(annotation) or model
    return list(_annotations(model))


def _annotations(model: type[BaseModel]) -> dict[str, Any]:
    return {str(field.validation_alias or name): field.annotation for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _model_in(inner))), None)
