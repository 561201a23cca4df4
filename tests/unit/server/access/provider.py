"""A provider of OpenID Connect for tests, of the package oidc-provider-mock: `python -m tests.unit.server.access.provider`.

Prints its port. The package does not look at PKCE, so what stands in front of it does, as providers do: a code is given only to
who has the verifier that was announced for it.
"""

from __future__ import annotations

import hashlib
import io
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import oidc_provider_mock
from werkzeug.serving import make_server

USERS = {
    "sub-1": {"preferred_username": "Ann", "groups": ["net1", "unknown"]},
    "sub-2": {"preferred_username": "owner", "groups": []},
    "sub-3": {"preferred_username": "not a name"},
}


class Pkce:
    """The provider, which knows of each code which verifier belongs to it."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._challenges: dict[str, str] = {}

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answers."""
        if environ["PATH_INFO"] == "/oauth2/token":
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            said = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            digest = hashlib.sha256(said.get("code_verifier", "").encode()).digest()
            if urlsafe_b64encode(digest).rstrip(b"=").decode() != self._challenges.pop(said.get("code", ""), None):
                start("400 Bad Request", [("Content-Type", "application/json")])
                return [b'{"error": "invalid_grant"}']
            environ["wsgi.input"] = io.BytesIO(body)
            return self._app(environ, start)  # type: ignore[no-any-return]
        asked = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}

        def started(status: str, headers: list[tuple[str, str]], *others: Any) -> Any:
            code = parse_qs(urlsplit(dict(headers).get("Location", "")).query).get("code")
            if code and asked.get("code_challenge_method") == "S256":
                self._challenges[code[0]] = asked["code_challenge"]
            return start(status, headers, *others)

        return self._app(environ, started)  # type: ignore[no-any-return]


if __name__ == "__main__":
    users = [oidc_provider_mock.User(sub=sub, claims=claims) for sub, claims in USERS.items()]
    app = oidc_provider_mock.app(require_nonce=True, user_claims=users)
    server = make_server("localhost", 0, Pkce(app), threaded=True)
    print(server.server_port, flush=True)
    sys.stdin.close()
    server.serve_forever()
