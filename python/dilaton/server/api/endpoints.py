"""Endpoints, and the rules that guard them: there is no way to make one without.

A rule is checked in a dependency that comes before all others, so that nothing of an endpoint runs for whom it is not,
and leaves what it has found, who is calling and what about, for the endpoint to take: code that asks for them under no
rule finds nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Depends, FastAPI
from fastapi.params import Depends as Dependency
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from dilaton.server.access.callers import Caller, came_with, remembered, renewed
from dilaton.server.access.rules import PERMISSIONS
from dilaton.server.database.actions import note, now_ms
from dilaton.server.database.tables import LabRow, RunRow, SweepRow, TemplateRow
from dilaton.server.problems import MEDIA_TYPE, Problem, missing
from dilaton.server.state import State

PREFIX = "/api/v1"

FOLDER = re.compile(r"(/[a-z0-9][a-z0-9._-]{0,63}){1,3}")
"""What folders are called."""

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": {"type": "object", "required": ["type", "status", "detail"]}}},
    }
}
"""What endpoints answer when something is wrong."""

Method = Literal["GET", "POST", "PUT", "DELETE", "WEBSOCKET"]
Object = Literal["lab", "run", "template", "sweep", "folder", "each", "server"]
Function = TypeVar("Function", bound=Callable[..., Any])
Row = TypeVar("Row", LabRow, RunRow, SweepRow, TemplateRow)


@dataclass(frozen=True)
class Needs:
    """A permission on an object: of the path or query of the request, or on each of those that are listed."""

    permission: str
    of: Object

    def __post_init__(self) -> None:
        """Refuses a permission that there is not."""
        assert self.permission in PERMISSIONS, self.permission


@dataclass(frozen=True)
class Rule:
    """Who may use an endpoint: anybody, whoever is logged in, or who has some permissions as well."""

    is_public: bool = False
    needs: tuple[Needs, ...] = ()

    def words(self) -> dict[str, Any]:
        """The rule in the OpenAPI description."""
        if self.is_public:
            return {"public": True}
        return {"public": False, "needs": [{"permission": need.permission, "of": need.of} for need in self.needs]}


PUBLIC = Rule(is_public=True)
LOGGED_IN = Rule()
"""The rule for what concerns only the caller."""


def needs(*pairs: tuple[str, Object]) -> Rule:
    """A rule of permissions."""
    return Rule(needs=tuple(Needs(permission, of) for permission, of in pairs))


@dataclass(frozen=True)
class Endpoint:
    """Something that can be asked."""

    method: Method
    path: str
    rule: Rule
    function: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)

    def add_to(self, app: FastAPI) -> None:
        """Makes it one of the application's.

        A function that may wait, as for the database, is called in a thread, and nothing else is: FastAPI would also
        take one for each dependency and to look at what is answered, and each is one turn more of a core to wait for,
        where runs want all of them.
        """
        if self.method == "WEBSOCKET":
            app.add_api_websocket_route(self.path, self.function, dependencies=[guard(self.rule)])
            return
        openapi = {"x-rule": self.rule.words(), "parameters": self._parameters()}
        app.add_api_route(
            self.path,
            self.function if iscoroutinefunction(self.function) else _in_thread(self.function),
            methods=[self.method],
            dependencies=[guard(self.rule)],
            openapi_extra=openapi,
            **({"responses": PROBLEMS} | self.options),
        )

    def described(self) -> dict[str, Any]:
        """What is said of a WebSocket."""
        return {
            "summary": (self.function.__doc__ or "").strip(),
            "x-rule": self.rule.words(),
            "parameters": self._parameters(),
        }

    def _parameters(self) -> list[dict[str, Any]]:
        """What the rule takes of the path and the query."""
        objects = {need.of for need in self.rule.needs}
        found: list[dict[str, Any]] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in ("lab", "run", "template", "sweep")
            if name in objects
        ]
        if "folder" in objects:
            found.append({"name": "folder", "in": "query", "required": False, "schema": {"type": "string"}})
        return found


@dataclass(frozen=True)
class Found:
    """What a rule has found: who is calling, and about what."""

    who: Caller | None = None
    lab: LabRow | None = None
    run: RunRow | None = None
    template: TemplateRow | None = None
    sweep: SweepRow | None = None
    folder: str = ""


class Endpoints(list[Endpoint]):
    """The endpoints of a part of the API."""

    def add(self, method: Method, path: str, rule: Rule, **options: Any) -> Callable[[Function], Function]:
        """Makes a function an endpoint."""

        def made(function: Function) -> Function:
            self.append(Endpoint(method, path, rule, function, options))
            return function

        return made


def state_of(request: HTTPConnection) -> State:
    """What all endpoints share."""
    state: State = request.app.state.server
    return state


def _in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same as a coroutine."""

    @functools.wraps(function)
    async def called(*values: Any, **named: Any) -> Any:
        return await run_in_threadpool(function, *values, **named)

    return called


def guard(rule: Rule) -> Dependency:
    """The dependency that checks a rule."""

    async def check(request: HTTPConnection) -> None:
        request.state.found = Found() if rule.is_public else await _allowed(rule.needs, request)

    return Dependency(check)


async def _allowed(rule: Sequence[Needs], request: HTTPConnection) -> Found:
    """As `find`, which is not asked for what is remembered."""
    state = state_of(request)
    came = came_with(state.settings, request)
    who = remembered(state.store, state.policy, came)
    if who is not None and all(need.of in ("each", "server", "folder") for need in rule):
        folder = _folder(who, request) if any(need.of == "folder" for need in rule) else ""
        paths = {"server": "/", "folder": folder}
        if all(need.of == "each" or who.access.may(need.permission, paths[need.of]) for need in rule):
            return Found(who, folder=folder)
    return await run_in_threadpool(find, rule, request, came)


def find(rule: Sequence[Needs], request: HTTPConnection, came: Caller) -> Found:
    """What a request is about, if its caller may ask that.

    Raises:
        Problem: they may not. Whoever may not even see an object is told that there is none.
    """
    state = state_of(request)
    who = renewed(state.store, state.policy, came)
    lab = run = template = sweep = None
    folder = ""
    for need in rule:
        match need.of:
            case "each":
                continue
            case "server":
                path = "/"
            case "folder":
                path = folder = _folder(who, request)
            case "lab":
                lab = _seen(state, who, LabRow, "lab", request)
                path = lab.path
            case "run":
                run = _seen(state, who, RunRow, "run", request)
                path = run.path
            case "template":
                template = _seen(state, who, TemplateRow, "template", request)
                path = template.path
            case "sweep":
                sweep = _seen(state, who, SweepRow, "sweep", request)
                path = sweep.path
        if not who.access.may(need.permission, path):
            _note_refusal(state, who, need.permission, path)
            raise Problem(403, "permission", f"you do not have {need.permission} here", permission=need.permission)
    return Found(who, lab, run, template, sweep, folder)


def _folder(who: Caller, request: HTTPConnection) -> str:
    folder = request.query_params.get("folder") or who.home
    if not FOLDER.fullmatch(folder):
        raise Problem(422, "argument", "folder: one to three names, as /home/ann", field="folder")
    return folder


def _note_refusal(state: State, who: Caller, permission: str, path: str) -> None:
    if state.refusals.is_new(who.name, permission, path, now_ms()):
        with state.store.writing() as session:
            note(session, who.name, "refused", path, permission=permission)


SEEN_BY = {"lab": "Lab.Read", "run": "Run.Read", "sweep": "Run.Read", "template": "Template.Read"}
"""By which permission somebody knows that there is such a thing."""


def _seen(state: State, who: Caller, table: type[Row], what: str, request: HTTPConnection) -> Row:
    """The object that a path names, if its caller may know of it."""
    identity = request.path_params[what]
    with state.store.reading() as session:
        row = session.scalar(select(table).where(table.identity == identity))
    if row is None or not who.access.may(SEEN_BY[what], row.path):
        raise missing(what, identity)
    return row


async def _who(request: HTTPConnection) -> Caller:
    found: Found = request.state.found
    assert found.who is not None, "a public endpoint has no caller"
    return found.who


async def _found_lab(request: HTTPConnection) -> LabRow:
    found: Found = request.state.found
    assert found.lab is not None, "the rule is about no lab"
    return found.lab


async def _found_run(request: HTTPConnection) -> RunRow:
    found: Found = request.state.found
    assert found.run is not None, "the rule is about no run"
    return found.run


async def _found_template(request: HTTPConnection) -> TemplateRow:
    found: Found = request.state.found
    assert found.template is not None, "the rule is about no template"
    return found.template


async def _found_sweep(request: HTTPConnection) -> SweepRow:
    found: Found = request.state.found
    assert found.sweep is not None, "the rule is about no sweep"
    return found.sweep


async def _found_folder(request: HTTPConnection) -> str:
    found: Found = request.state.found
    assert found.folder, "the rule is about no folder"
    return found.folder


async def _server(request: HTTPConnection) -> State:
    return state_of(request)


Who = Annotated[Caller, Depends(_who)]
TheLab = Annotated[LabRow, Depends(_found_lab)]
TheRun = Annotated[RunRow, Depends(_found_run)]
TheTemplate = Annotated[TemplateRow, Depends(_found_template)]
TheSweep = Annotated[SweepRow, Depends(_found_sweep)]
Folder = Annotated[str, Depends(_found_folder)]
Server = Annotated[State, Depends(_server)]
