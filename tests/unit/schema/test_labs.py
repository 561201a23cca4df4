"""The schema of labs, for editors: it takes every good lab, and knows the names of fields and the words that they may have."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from dilaton.schema.labs import lab_schema, schema_text
from tests.conftest import ROOT, dilaton

LABS = [*sorted(ROOT.glob("examples/*/lab.yaml")), *sorted(ROOT.glob("papers/*/lab.yaml"))]
WHOLE = jsonschema.Draft202012Validator(lab_schema())


def mistakes(**fields: Any) -> list[str]:
    """What is wrong with a small lab that has these fields."""
    lab = {"name": "x", "nodes": {"a": None, "b": {}}, "links": ["a -- b"], **fields}
    return [error.message for error in WHOLE.iter_errors(lab)]


def test_there_are_labs_to_try() -> None:
    assert len(LABS) > 25, "or none is found any more"


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.parent.name)
def test_every_lab_of_ours_is_valid(path: Path) -> None:
    WHOLE.validate(YAML(typ="safe").load(path.read_text()))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"guests": 3},
        {"guests": {"g": {"tdf": 3}}},
        {"topology": {"kind": "line"}, "nodes": {}},
        {"routing": "ospf"},
        {"time": {"tdf": "auto", "auto": {"max": 10}}},
        {"links": [["a", "b"], {"endpoints": "a -- b", "rate": "1Gbit", "delay": {"mean": "5ms", "jitter": "1ms"}}]},
        {"changes": [{"at": "3s", "link": "a--b", "down": True}]},
        {"faults": [{"at": "5s", "for": "10s", "partition": [["a"], ["b"]]}]},
        {"run": [{"on": "a", "exec": ["ls", 5], "restart": {"when": "always"}, "ready": {"tcp": 80}}]},
    ],
    ids=str,
)
def test_short_and_long_forms_are_valid(fields: dict[str, Any]) -> None:
    assert mistakes(**fields) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"lnks": []}, "'lnks' was unexpected"),
        ({"time": {"drive": "fast"}}, "'fast' is not one of ['wall', 'work', 'event']"),
        ({"time": "work"}, "'work' is not of type 'object'"),
        ({"nodes": {"a": {"knd": "router"}}}, "is not valid under any"),
        ({"links": [{"endpoints": "a -- b", "rte": "1Gbit"}]}, "is not valid under any"),
        ({"run": [{"exec": "true"}]}, "'on' is a required property"),
        ({"faults": [{"at": "5s", "prtition": [["a"], ["b"]]}]}, "'prtition' was unexpected"),
    ],
    ids=str,
)
def test_a_name_that_is_none_and_a_word_that_may_not_be_are_mistakes(fields: dict[str, Any], said: str) -> None:
    assert any(said in mistake for mistake in mistakes(**fields))


def test_fields_are_described() -> None:
    assert "run ends" in lab_schema()["properties"]["stop_after"]["description"]


def test_what_a_field_means_that_is_not_there_is_told_in_words_of_labs() -> None:
    restart = lab_schema()["$defs"]["Fault"]["properties"]["restart"]
    assert restart["description"].startswith("After the kill; without it: ")
    assert not re.findall(r".{0,60}\bNone\b.{0,30}", schema_text())


def test_the_command_prints_it() -> None:
    assert json.loads(dilaton("schema", stdin=subprocess.DEVNULL).stdout) == lab_schema()
