"""What goes wrong, as problem details (RFC 9457): `type` is for programs, `detail` for people."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DataError, InterfaceError, OperationalError
from starlette.exceptions import HTTPException

from dilaton.host.errors import HostLacksError
from dilaton.lab.errors import LabError
from dilaton.run.control.errors import ControlError
from dilaton.server.access.passwords import BusyError
from dilaton.service.errors import RequestError

MEDIA_TYPE = "application/problem+json"

CONTROL_STATUS = {"argument": 422, "verb": 409, "refused": 409, "request": 422, "guest": 502, "host": 503}
"""The status of what a run cannot do, by the kind of the error."""


HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}
"""What an answer of a status also says."""


class Problem(Exception):
    """Something is wrong with a request; `also` are further members of the answer."""

    def __init__(self, status: int, kind: str, detail: str, **also: Any) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail, self.also = status, kind, detail, also

    def response(self) -> JSONResponse:
        """The answer."""
        body = {"type": f"urn:dilaton:{self.kind}", "status": self.status, "detail": self.detail, **self.also}
        headers = HEADERS.get(self.status)
        return JSONResponse(body, self.status, headers, media_type=MEDIA_TYPE)


def missing(what: str, name: str) -> Problem:
    """The answer when there is no such thing, or none that the caller may see."""
    return Problem(404, "missing", f"{what} {name}: there is none that you may see")


def of_lab(error: LabError) -> Problem:
    """A lab with mistakes, each with its place; the name of the file is the server's own affair."""
    problems = [
        {"line": one.line, "column": one.column, "field": one.field, "message": one.message} for one in error.problems
    ]
    first = error.problems[0]
    place = f"{first.line}:{first.column}: " if first.line else ""
    field = f"{first.field}: " if first.field else ""
    return Problem(422, "lab", f"{place}{field}{first.message}", problems=problems)


def of_error(error: Exception) -> Problem:
    """An error of the service as a problem."""
    match error:
        case LabError():
            return of_lab(error)
        case RequestError():
            return Problem(422, "argument", error.message, field=error.field)
        case ControlError():
            return Problem(CONTROL_STATUS[error.kind], f"run-{error.kind}", error.message)
        case HostLacksError():
            return Problem(503, "host-lacks", str(error))
    raise error


async def answer_problem(_: Request, error: Exception) -> JSONResponse:
    """The answer to a request that ended in a `Problem` or in an error of the service."""
    return (error if isinstance(error, Problem) else of_error(error)).response()


async def answer_invalid(_: Request, error: Exception) -> JSONResponse:
    """The answer to a request that has other fields than the endpoint takes."""
    assert isinstance(error, RequestValidationError)
    found = [
        {"field": ".".join(str(part) for part in one["loc"][1:]), "message": str(one["msg"])} for one in error.errors()
    ]
    detail = "; ".join(f"{one['field']}: {one['message']}" for one in found[:5])
    return Problem(422, "argument", detail, problems=found).response()


async def answer_http(_: Request, error: Exception) -> JSONResponse:
    """The answer to a request for what is no endpoint."""
    assert isinstance(error, HTTPException)
    return Problem(error.status_code, "http", str(error.detail)).response()


async def answer_gone(_: Request, __: Exception) -> JSONResponse:
    """The answer as long as the database cannot be reached."""
    return Problem(503, "database", "the database cannot be reached; try again").response()


async def answer_odd(_: Request, __: Exception) -> JSONResponse:
    """The answer to what no database takes: a text with a zero byte, or a number beyond all bounds."""
    return Problem(422, "argument", "a text has no zero bytes, and a number at most 18 digits").response()


async def answer_busy(_: Request, __: Exception) -> JSONResponse:
    """The answer when too many passwords are tried at once."""
    return Problem(503, "busy", "too many log in at once; try again").response()


HANDLERS: dict[type[Exception], Callable[[Request, Exception], Coroutine[Any, Any, JSONResponse]]] = {
    OperationalError: answer_gone,
    InterfaceError: answer_gone,
    BusyError: answer_busy,
    DataError: answer_odd,
    OverflowError: answer_odd,
    Problem: answer_problem,
    LabError: answer_problem,
    ControlError: answer_problem,
    HostLacksError: answer_problem,
    RequestValidationError: answer_invalid,
    HTTPException: answer_http,
}
