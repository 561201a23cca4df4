"""The whole API, asked for what its description allows, and for what it does not: no answer is a fault of the server's.

schemathesis makes requests of the description; the same ones each time, so that what fails fails again. Things that the
paths name are there, so that requests get past the rules to what is behind them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from dilaton.server.problems import MEDIA_TYPE
from tests.unit.server.serving import LAB, Client, Served, served, use_stub

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: ./dev setup does it")

EXAMPLES = 3
"""Of each operation and kind; far more were tried by hand."""

ENDLESS = ("/events", "/happenings", "/capture")
"""Streams, which have no end."""

LAST = {
    ("DELETE", "/api/v1/session"),
    ("PUT", "/api/v1/password"),
    ("PUT", "/api/v1/people/{person}"),
    ("DELETE", "/api/v1/labs/{lab}"),
    ("DELETE", "/api/v1/runs/{run}"),
    ("DELETE", "/api/v1/sweeps/{sweep}"),
    ("DELETE", "/api/v1/templates/{template}"),
}
"""What would take away what the others ask with or about."""

NO_ANSWER_NOW = 503


@dataclass
class Fuzzed:
    """A server with one thing of each kind, and its description, in which paths name these."""

    client: Client
    schema: Any


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        served(tmp_path_factory.mktemp("server"), registries=("registry.invalid",)) as server,
    ):
        use_stub(monkeypatch)
        yield made(server)


def made(server: Served) -> Fuzzed:
    owner = server.client()
    lab = owner.keep()
    run = owner.launch(lab)
    owner.wait(run, "finished")
    names = {
        "lab": lab,
        "run": run,
        "template": owner.api("POST", "/templates", {"name": "tiny", "text": LAB})["template"],
        "sweep": owner.api("POST", f"/labs/{lab}/sweeps", {"repeat": 2})["sweep"],
    }
    description = owner.ask("GET", "/openapi.json").json
    for operations in description["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and parameter["name"] in names:
                    parameter["schema"] = {"type": "string", "enum": [names[parameter["name"]], "none"]}
    return Fuzzed(owner, schemathesis.openapi.from_dict(description))


def requests_of(fuzzed: Fuzzed, operation: Any, mode: Any) -> int:
    """Makes requests of an operation; how many there were."""
    tried = 0

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        nonlocal tried
        answer = case.call(base_url=fuzzed.client.settings.origin, headers=fuzzed.client.headers)
        request = answer.request
        told = f"{request.method} {request.url} {request.body!r}: {answer.status_code} {answer.text[:500]}"
        assert answer.status_code < 500 or answer.status_code == NO_ANSWER_NOW, told
        if answer.status_code >= 400:
            assert answer.headers["content-type"][0] == MEDIA_TYPE, told
        tried += 1

    ask()
    return tried


@pytest.mark.parametrize("kind", ["positive", "negative"])
def test_no_request_is_answered_by_a_fault_and_every_refusal_is_a_problem(fuzzed: Fuzzed, kind: str) -> None:
    mode = schemathesis.GenerationMode(kind)
    tried = {}
    for result in fuzzed.schema.get_all_operations():
        operation = result.ok()
        label = operation.method.upper(), operation.path
        if operation.path.endswith(ENDLESS) or label in LAST:
            continue
        try:
            tried[label] = requests_of(fuzzed, operation, mode)
        except Unsatisfiable:
            assert kind == "negative", f"{label}: only of what takes nothing there is no request that it does not take"
    assert len(tried) > (60 if kind == "positive" else 40), tried
