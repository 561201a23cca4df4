"""Requests to a server, and its answers."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "::1", "localhost")

SILENCE_HOST_S = 60.0
"""After which a connection is given up on which nothing is said; streams say every 15 s that they are alive."""

ANSWER_BYTES_MAX = 256 << 20
"""Of an answer that is read whole; a record is the largest."""

LINE_BYTES_MAX = 1 << 20
"""Of a line of a stream."""


LOST = (ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException)
"""How a connection is lost while an answer is read; other errors then are of what becomes of the answer."""


class ServerError(Exception):
    """A server refuses, or cannot be reached; the message says why.

    Attributes:
        status: Of HTTP; 0: there was no answer.
        kind: Why, for programs, as `urn:dilaton:permission`.
        problems: The mistakes of a lab, each with line, column, field and message.
    """

    def __init__(self, message: str, status: int = 0, kind: str = "", problems: Any = None) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind
        self.problems: list[dict[str, Any]] = problems if isinstance(problems, list) else []


class Asker:
    """Asks one server, with one token."""

    def __init__(self, url: str, token: str) -> None:
        """Asks nothing yet.

        Raises:
            ServerError: the URL is none of a server, or the token would be sent in plain text.
        """
        try:
            parts = urlsplit(url)
            host, self._port = parts.hostname or "", parts.port
        except ValueError:
            host, parts = "", urlsplit("")
        if parts.scheme not in ("http", "https") or not host or parts.path.strip("/") or parts.query or parts.username:
            raise ServerError(f"{url}: not the URL of a server, such as https://lab.example.org")
        if parts.scheme == "http" and host not in LOOPBACK:
            raise ServerError(f"{url}: a token is sent to other machines over https:// alone")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ServerError("a server wants a token; make one on its page, or by POST /tokens")
        self.url, self._host, self._is_secure = url.rstrip("/"), host, parts.scheme == "https"
        self._headers = {"Authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the API answers, which is JSON; None: nothing.

        Raises:
            ServerError: it refuses, or there is no answer.
        """
        with self.answered(method, path, body) as answer:
            said = _read(answer)
        try:
            return json.loads(said) if said else None
        except ValueError:
            raise ServerError(f"{self.url}: answers what is no JSON; is it a server of Dilaton?") from None

    def websocket(self, path: str) -> tuple[str, dict[str, str]]:
        """The URL of a WebSocket of the API, and the headers that it takes."""
        return f"ws{self.url.removeprefix('http')}/api/v1{path}", dict(self._headers)

    @contextlib.contextmanager
    def answered(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        silence_host_s: float | None = SILENCE_HOST_S,
    ) -> Iterator[http.client.HTTPResponse]:
        """An answer of the API, to be read; None: it may be silent for as long as it likes, once it has begun.

        Raises:
            ServerError: it refuses, or the connection is lost, also while it is read.
        """
        said = self._headers | (headers or {})
        data = None
        if body is not None:
            data, said = json.dumps(body).encode(), said | {"Content-Type": "application/json"}
        connection = self._connection()
        with contextlib.closing(connection), self._losing(*LOST):
            with self._losing(OSError):
                connection.request(method, f"/api/v1{path}", data, said)
                answer = connection.getresponse()
                if not 200 <= answer.status < 300:
                    raise refusal(self.url, answer.status, _read(answer))
            if connection.sock is not None:
                connection.sock.settimeout(silence_host_s)
            yield answer

    @contextlib.contextmanager
    def _losing(self, *kinds: type[Exception]) -> Iterator[None]:
        """Takes errors of these kinds for a connection that is lost, or was never made."""
        try:
            yield
        except kinds as error:
            raise ServerError(f"{self.url}: {error or type(error).__name__}") from error

    @contextlib.contextmanager
    def events(self, path: str, last: str = "") -> Iterator[Iterator[tuple[str, str, Any]]]:
        """The events of a stream behind the number `last`: number, kind and data each.

        Raises:
            ServerError: as of `answered`.
        """
        with self.answered("GET", path, headers={"Last-Event-ID": last} if last else None) as answer:
            yield _events(answer)

    def _connection(self) -> http.client.HTTPConnection:
        if self._is_secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=SILENCE_HOST_S, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=SILENCE_HOST_S)


def _read(answer: http.client.HTTPResponse) -> bytes:
    said = answer.read(ANSWER_BYTES_MAX + 1)
    if len(said) > ANSWER_BYTES_MAX:
        raise ServerError(f"an answer has more than {ANSWER_BYTES_MAX} bytes")
    return said


def refusal(url: str, status: int, said: bytes) -> ServerError:
    """What a server says that refuses, as an error."""
    try:
        problem = json.loads(said)
        return ServerError(str(problem["detail"]), status, str(problem["type"]), problem.get("problems"))
    except (ValueError, KeyError, TypeError):
        return ServerError(f"{url}: answers with status {status}; is it a server of Dilaton?", status)


def lines(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The lines of JSON of an answer that comes bit by bit.

    Raises:
        ServerError: one is none, or has no end, as of a connection that was lost.
    """
    while line := answer.readline(LINE_BYTES_MAX):
        try:
            if not line.endswith(b"\n") or not isinstance(said := json.loads(line), dict):
                raise ValueError
        except ValueError:
            raise ServerError("an answer has ended in the middle, or has a line that is no JSON") from None
        yield said


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    """Ends with the stream; a line without its end is one of a connection that was lost."""
    said: dict[str, str] = {}
    while (line := answer.readline(LINE_BYTES_MAX)).endswith(b"\n"):
        if line != b"\n":
            name, _, value = line.decode(errors="replace").rstrip("\n").partition(": ")
            said[name] = value
            continue
        if "data" in said:
            try:
                yield said.get("id", ""), said.get("event", ""), json.loads(said["data"])
            except ValueError:
                raise ServerError("a stream has an event that is no JSON") from None
        said = {}
