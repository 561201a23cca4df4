"""Logging in at somebody else's: OpenID Connect, by an authorization code (OpenID Connect Core 1.0, section 3.1).

The browser is sent to the provider with a *state*, a *nonce* and the digest of a *verifier* (PKCE, RFC 7636), and comes
back with a code. Whoever may have seen the code on its way cannot use it without the verifier, which never leaves this
server; a page that sends somebody back here with a code of its own has not the browser's cookie with the state; and an
identity that was made for another login has another nonce. What counts is the provider's signed token, fetched from the
provider itself, and of that the provider's own word for somebody, which never changes: names can be chosen.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import urllib.error
import urllib.request
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from dilaton.server.access.secrets import digest, secret
from dilaton.server.problems import Problem

LASTS_MS = 600_000
"""How long somebody may take at the provider."""

BEGUN_MAX = 10_000
"""Logins that wait for their browsers; more are refused, since anybody can begin one."""

ANSWER_BYTES_MAX = 1 << 20
ANSWER_HOST_S = 10.0

CLOCK_S = 60
"""By which the provider's clock may differ."""

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures that are believed: none whose key a client has, and not none."""

KEYS_MS = 60_000
"""After which the provider's keys are fetched anew for a signature that none of them has made."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Provider:
    """Who says who somebody is.

    Attributes:
        issuer: Its URL, as its tokens name it.
        client, secret: What this server is called there, and by what it is known; empty: PKCE alone.
        scopes: What is asked for beside `openid`.
        name_claim: What becomes the name of a new account.
        groups_claim: A list of groups; empty: there is none.
    """

    issuer: str
    client: str
    secret: str = ""
    scopes: tuple[str, ...] = ("profile",)
    name_claim: str = "preferred_username"
    groups_claim: str = ""


@dataclass(frozen=True)
class Someone:
    """Who somebody is for the provider: its own name for them, the one that they go by, and their groups."""

    subject: str
    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class _Begun:
    nonce: str
    verifier: str
    until_ms: int


class SingleSignOn:
    """Logins that have begun, and the provider that they wait for; for any thread."""

    def __init__(self, provider: Provider, back: str) -> None:
        """Asks nothing yet.

        Args:
            provider: Who is asked.
            back: The URL to which the provider sends browsers back.
        """
        self._provider, self._back = provider, back
        self._begun: dict[str, _Begun] = {}
        self._lock = threading.Lock()
        self._said: dict[str, Any] | None = None
        self._keys: Any = None
        self._keys_ms = 0

    def begin(self, now_ms: int) -> tuple[str, str]:
        """Where a browser is sent, and the state that it keeps meanwhile.

        Raises:
            Problem: the provider does not answer, or too many have begun.
        """
        state, begun = secret(), _Begun(secret(), secrets.token_urlsafe(64), now_ms + LASTS_MS)
        there = self._endpoint("authorization_endpoint")
        with self._lock:
            self._begun = {key: one for key, one in self._begun.items() if one.until_ms > now_ms}
            if len(self._begun) >= BEGUN_MAX:
                raise Problem(503, "busy", "too many log in at once; try again in a while")
            self._begun[digest(state)] = begun
        challenge = urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self._provider.client,
            "redirect_uri": self._back,
            "scope": " ".join(("openid", *self._provider.scopes)),
            "state": state,
            "nonce": begun.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{there}{'&' if '?' in there else '?'}{urlencode(asked)}", state

    def finish(self, state: str, kept: str, code: str, now_ms: int) -> Someone:
        """Who has come back.

        Args:
            state: What the browser says.
            kept: What it has kept.
            code: What the provider gave it.
            now_ms: Now.

        Raises:
            Problem: it did not begin here, or the provider says nothing that can be believed.
        """
        with self._lock:
            begun = (
                self._begun.pop(digest(state), None) if secrets.compare_digest(digest(state), digest(kept)) else None
            )
        if begun is None or now_ms > begun.until_ms:
            raise Problem(401, "login", "this login did not begin in this browser, or took too long; begin it anew")
        asked = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._back,
            "client_id": self._provider.client,
            "code_verifier": begun.verifier,
        }
        token = self._asked(self._endpoint("token_endpoint"), asked).get("id_token")
        claims = self._claims(token, begun.nonce, now_ms)
        said = claims.get(self._provider.groups_claim, []) if self._provider.groups_claim else []
        groups = tuple(one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str))
        return Someone(str(claims["sub"]), str(claims.get(self._provider.name_claim) or ""), groups)

    def _claims(self, token: object, nonce: str, now_ms: int) -> dict[str, Any]:
        """What a token says that this provider has made for this login."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        rules: Any = {
            "iss": {"essential": True, "value": self._provider.issuer},
            "aud": {"essential": True, "value": self._provider.client},
            "sub": {"essential": True, "allow_blank": False},
            "nonce": {"essential": True, "value": nonce},
            "exp": {"essential": True},
            "iat": {"essential": True},
        }
        for again in (False, True):
            try:
                claims = dict(jwt.decode(str(token), self._keys_of(now_ms, again=again), algorithms=ALGORITHMS).claims)
                jwt.JWTClaimsRegistry(now=now_ms // 1000, leeway=CLOCK_S, **rules).validate(claims)
            except (JoseError, ValueError, KeyError, TypeError) as error:
                # It may have been signed by a key that is new.
                if again:
                    raise Problem(401, "login", f"the provider's token cannot be believed: {error}") from error
            else:
                break
        # A token for several has to say for whom it was made.
        if claims.get("azp", self._provider.client) != self._provider.client:
            raise Problem(401, "login", "the provider's token was made for somebody else")
        return claims

    def _keys_of(self, now_ms: int, *, again: bool) -> Any:
        from joserfc.jwk import KeySet

        with self._lock:
            if self._keys is None or (again and now_ms > self._keys_ms + KEYS_MS):
                self._keys_ms = now_ms
                said: Any = self._asked(self._endpoint("jwks_uri"))
                self._keys = KeySet.import_key_set(said)
            return self._keys

    def _endpoint(self, name: str) -> str:
        """One of the provider's endpoints, as it says itself (OpenID Connect Discovery 1.0)."""
        if self._said is None:
            said = self._asked(f"{self._provider.issuer.rstrip('/')}/.well-known/openid-configuration")
            if said.get("issuer") != self._provider.issuer:
                raise Problem(502, "provider", f"the provider calls itself {said.get('issuer')}")
            self._said = said
        found = str(self._said.get(name, ""))
        if not is_safe(found):
            raise Problem(502, "provider", f"the provider's {name} is not https://…")
        return found

    def _asked(self, url: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        """What the provider answers.

        Raises:
            Problem: nothing that can be understood.
        """
        request = urllib.request.Request(url, urlencode(form).encode() if form else None)
        request.add_header("Accept", "application/json")
        if form and self._provider.secret:
            # RFC 6749, section 2.3.1: both are encoded as in a form first.
            known = f"{quote(self._provider.client, safe='')}:{quote(self._provider.secret, safe='')}"
            request.add_header("Authorization", f"Basic {b64encode(known.encode()).decode()}")
        try:
            with _OPENER.open(request, timeout=ANSWER_HOST_S) as answer:
                said = json.loads(answer.read(ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as error:
            error.close()
            if form:
                raise Problem(401, "login", "the provider takes this code for nobody's; begin anew") from error
            raise Problem(502, "provider", f"the provider answers {error.code}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise Problem(502, "provider", "the provider does not answer, or not in a way to be understood") from error
        if not isinstance(said, dict):
            raise Problem(502, "provider", "the provider does not answer in a way to be understood")
        return said


class _Nowhere(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: a secret goes to whom it is for, and nobody else."""

    def redirect_request(self, *_: Any) -> None:
        """Follows none."""


_OPENER = urllib.request.build_opener(_Nowhere)


def is_safe(url: str) -> bool:
    """Whether what is said to a URL stays between the two: over TLS, or on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
