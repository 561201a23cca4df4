"""The verbs of the control socket: what is no good is refused before anybody acts on it, and all of it is documented."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from dilaton.run.control import verbs
from dilaton.run.control.answers import CLOCK_UNTIL, Clock, Done
from dilaton.run.control.errors import ControlError, ErrorKind
from dilaton.run.control.happenings import Entered, happening_of, line_of
from dilaton.run.control.requests import Client
from dilaton.run.control.schema import schema_text
from dilaton.run.control.verbs import VERBS, Until, Verb
from tests.conftest import ROOT
from tests.unit.run.control.test_requests import serving

SCHEMA = ROOT / "docs" / "control.schema.json"
PAGE = (ROOT / "docs" / "control-protocol.md").read_text()
CLOCK = Clock(virtual_s=1.5, host_s=2.0, tdf=10.0, held=True, drive="work", steered_by="", max_speed=None)


def read(verb: Verb[Any, Any], request: dict[str, Any]) -> Any:
    """What reaches who answers a verb."""
    found = []

    async def keep(asked: Any) -> Done:
        found.append(asked)
        return Done()

    asyncio.run(verb.by(keep)[verb.name](request))  # type: ignore[arg-type]
    return found[0]


@pytest.mark.parametrize(
    ("verb", "request_", "said"),
    [
        (verbs.CLOCK_UNTIL, {}, "at is missing"),
        (verbs.CLOCK_UNTIL, {"at": "5"}, "at: 5: a duration needs a unit"),
        (verbs.CLOCK_UNTIL, {"at": None}, "at: "),
        (verbs.CLOCK_TDF, {"tdf": "fast"}, "tdf: fast: the time dilation factor must be a number"),
        (verbs.CLOCK_HOLD, {"now": True}, "now: nothing that clock.hold takes; it takes nothing"),
        (verbs.LINK_CHANGE, {"link": "a--b"}, "settings is missing"),
        (verbs.LINK_CHANGE, {"link": 3, "settings": []}, "link: input should be a valid string"),
        (verbs.LINK_CHANGE, {"link": "a--b", "settings": [["loss"]]}, "settings.0.1 is missing"),
        (verbs.SESSION_OPEN, {"node": "a", "argv": []}, "argv: a program and its arguments are strings"),
        (verbs.SESSION_OPEN, {"node": "a", "argv": ["a\0b"]}, "argv: a program and its arguments are strings"),
        (verbs.SESSION_OPEN, {"node": "a", "argv": ["a"], "env": {"A": 1}}, "env: an environment is an object of"),
        (verbs.SESSION_OPEN, {"node": "a", "argv": ["a"], "terminal": [1]}, "terminal: a terminal's size is its rows"),
    ],
)
def test_what_is_no_good_is_refused_by_its_name(verb: Verb[Any, Any], request_: dict[str, Any], said: str) -> None:
    with pytest.raises(ControlError) as error:
        read(verb, request_)
    assert str(error.value).startswith(said)
    assert error.value.kind == "argument"


def test_what_is_good_arrives_with_its_types() -> None:
    assert read(verbs.CLOCK_UNTIL, {"at": "1.5s"}).at == 1_500_000_000
    assert read(verbs.CLOCK_TDF, {"tdf": "1/3"}).tdf * 3 == 1
    change = read(verbs.LINK_CHANGE, {"link": "a--b", "settings": [["loss", "5%"]]})
    assert (change.settings, change.at, change.directory) == ([("loss", "5%")], None, ".")
    name = "\udcff"
    opened = read(verbs.SESSION_OPEN, {"node": "a", "argv": [name], "env": {"A": name}, "terminal": [24, 80]})
    assert (opened.argv, opened.env, opened.terminal) == ([name], {"A": name}, (24, 80))


def test_errors_tell_programs_why(tmp_path: Path) -> None:
    async def until(asked: Until) -> Clock:
        if asked.at > 1:
            raise ControlError("not now")
        return CLOCK

    with serving(tmp_path, verbs.CLOCK_UNTIL.by(until)), Client(tmp_path) as client:
        assert client.request(CLOCK_UNTIL, at="0s") == CLOCK
        for request, kind in (({"verb": "dance"}, "verb"), ({"verb": "clock.until"}, "argument")):
            with pytest.raises(ControlError) as error:
                client.request(**request)
            assert error.value.kind == kind
        with pytest.raises(ControlError, match=r"^not now$") as error:
            client.request(CLOCK_UNTIL, at="5s")
        assert error.value.kind == "refused"


def test_the_published_schema_is_that_of_the_verbs() -> None:
    """To write it anew: `PYTHONPATH=python .venv/bin/python -m dilaton.run.control.schema > docs/control.schema.json`."""
    assert SCHEMA.read_text() == schema_text()


def test_the_schema_is_one_and_fits_what_is_sent() -> None:
    schema = json.loads(schema_text())

    def check(value: Any, place: dict[str, Any]) -> None:
        whole = {"$defs": schema["$defs"], **place}
        jsonschema.Draft202012Validator.check_schema(whole)
        jsonschema.validate(value, whole)

    check({"at": "5s"}, schema["verbs"]["clock.until"]["takes"])
    check(CLOCK, schema["verbs"]["clock.until"]["answers"])
    check(json.loads(line_of(Entered(state="running"))), schema["happening"])
    with pytest.raises(jsonschema.ValidationError):
        check({"at": "5s", "so": 1}, schema["verbs"]["clock.until"]["takes"])


def test_every_verb_error_and_happening_has_its_row() -> None:
    for verb in VERBS:
        assert f"| `{verb.name}` |" in PAGE, verb.name
    for kind in get_args(ErrorKind):
        assert f"| `{kind}` |" in PAGE, kind
    for kind in ("state", "progress", "event", "clock", "again"):
        assert f"| `{kind}` |" in PAGE, kind


def test_a_happening_comes_through_as_it_is_and_what_is_none_is_an_error() -> None:
    assert happening_of(line_of(Entered(state="failed"))) == Entered(state="failed")
    with pytest.raises(ValueError, match="kind"):
        happening_of(b'{"kind": "nonsense"}')
