"""Logging in by a provider of OpenID Connect: who gets which account and groups, and what lets nobody in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dilaton.lab.errors import LabError
from dilaton.server.access.single_sign_on import Provider, is_safe
from dilaton.server.settings import of_file
from tests.conftest import PATIENCE_HOST_S, ROOT
from tests.unit.server.serving import Answer, Client, Served, served

pytestmark = pytest.mark.skipif(
    find_spec("oidc_provider_mock") is None, reason="oidc-provider-mock is not installed: ./dev setup does it"
)

ROLES = """\
groups:
  net1:
    grants: [{path: /courses/net1, role: user}]
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    command = [sys.executable, "-P", "-m", "tests.unit.server.access.provider"]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        assert running.stdout
        try:
            yield f"http://localhost:{int(running.stdout.readline())}"
        finally:
            running.kill()


@pytest.fixture(scope="module")
def server(issuer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("server")
    (roles := directory / "roles.yaml").write_text(ROLES)
    provider = Provider(issuer, "dilaton", "a secret", groups_claim="groups")
    with served(directory / "data", roles=roles, provider=provider) as found:
        yield found


def test_who_is_not_logged_in_is_told_where_they_may_be_known(server: Served, tmp_path: Path) -> None:
    ways = "/api/v1/session/ways"
    assert server.stranger().ask("GET", ways).json == {"provider": "localhost"}
    with served(tmp_path) as alone:
        assert alone.stranger().ask("GET", ways).json == {"provider": None}


def begun(server: Served) -> tuple[str, str]:
    """The provider's URL, and the cookie of a browser that begins to log in."""
    answer = server.stranger().ask("GET", "/api/v1/session/provider")
    assert answer.status == 303, answer
    return answer.headers["location"], answer.headers["set-cookie"].partition(";")[0]


def back(url: str, subject: str, **changed: str) -> str:
    """Where the provider sends a browser back to, in which somebody has logged in; with other words in the query."""
    parts = urllib.parse.urlsplit(url)
    query = dict(urllib.parse.parse_qsl(parts.query)) | changed
    url = parts._replace(query=urllib.parse.urlencode(query)).geturl()

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            pass

    body = urllib.parse.urlencode({"sub": subject}).encode()
    try:
        answer = urllib.request.build_opener(Stay).open(url, body, timeout=PATIENCE_HOST_S)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        there = str(answer.headers["Location"])
    assert "/api/v1/session/provider/back?" in there, there
    return there[there.index("/api/v1") :]


def came_back(server: Served, path: str, cookie: str) -> Answer:
    return Client(server.settings, {"Cookie": cookie} if cookie else {}).ask("GET", path)


def session_of(server: Served, answer: Answer) -> Client:
    """Somebody who is logged in by an answer."""
    assert (answer.status, answer.headers["location"]) == (303, "/"), answer
    found = re.search(r"dilaton=([^;]+)", answer.headers["set-cookie"])
    assert found and "httponly" in answer.headers["set-cookie"].lower()
    return Client(server.settings, {"Cookie": f"dilaton={found[1]}", "Origin": server.settings.origin})


def test_who_the_provider_knows_has_an_account_and_the_groups_that_it_says(server: Served) -> None:
    url, cookie = begun(server)
    ann = session_of(server, came_back(server, back(url, "sub-1"), cookie))
    me = ann.api("GET", "/session")
    assert (me["name"], me["home"], me["groups"]) == ("ann", "/home/ann", ["net1"]), (
        "of a group without a name here: none"
    )
    assert "Lab.Write" in ann.api("GET", "/session/permissions?path=/courses/net1")
    url, cookie = begun(server)
    again = session_of(server, came_back(server, back(url, "sub-1"), cookie))
    assert again.api("GET", "/session")["name"] == "ann", "the same account"
    boss = server.client()
    assert (
        sum((one["action"], one["path"]) == ("person.make", "/home/ann") for one in boss.api("GET", "/audit?count=200"))
        == 1
    )
    boss.api("PUT", "/people/ann", {"is_active": False, "grants": []})
    url, cookie = begun(server)
    assert came_back(server, back(url, "sub-1"), cookie).status == 401, "it is closed"
    boss.api("PUT", "/people/ann", {"is_active": True, "grants": []})


def test_a_name_at_the_provider_gives_nobody_somebody_elses_account(server: Served) -> None:
    for subject, why in (("sub-2", "not the provider's"), ("sub-3", "none for an account")):
        url, cookie = begun(server)
        answer = came_back(server, back(url, subject), cookie)
        assert answer.status == 403 and why in answer.json["detail"], answer


def test_a_code_is_of_use_once_and_in_the_browser_that_began_alone(server: Served) -> None:
    url, cookie = begun(server)
    path = back(url, "sub-1")
    other = begun(server)[1]
    assert came_back(server, path, "").status == 401
    assert came_back(server, path, other).status == 401, "the cookie of another login"
    assert came_back(server, path.replace("state=", "state=x"), cookie).status == 401
    assert came_back(server, path, cookie).status == 303
    assert came_back(server, path, cookie).status == 401, "again"


def test_an_identity_of_another_login_and_a_code_of_another_verifier_let_nobody_in(server: Served) -> None:
    url, cookie = begun(server)
    answer = came_back(server, back(url, "sub-1", nonce="another"), cookie)
    assert answer.status == 401 and "nonce" in answer.json["detail"], answer
    url, cookie = begun(server)
    answer = came_back(server, back(url, "sub-1", code_challenge="another"), cookie)
    assert answer.status == 401 and "nobody's" in answer.json["detail"], answer
    url, cookie = begun(server)
    answer = came_back(server, back(url, "sub-1", client_id="another"), cookie)
    assert answer.status == 401, "the code is another client's"
    answer = came_back(server, "/api/v1/session/provider/back?error=access_denied", begun(server)[1])
    assert answer.status == 401 and "access_denied" in answer.json["detail"], answer


def test_groups_are_known_to_the_next_server_and_forgotten_without_a_provider(issuer: str, tmp_path: Path) -> None:
    (roles := tmp_path / "roles.yaml").write_text(ROLES)
    provider = Provider(issuer, "dilaton", "a secret", groups_claim="groups")
    with served(tmp_path / "data", roles=roles, provider=provider) as first:
        url, cookie = begun(first)
        session_of(first, came_back(first, back(url, "sub-1"), cookie))
    with served(tmp_path / "data", roles=roles, provider=provider) as second:
        assert second.client("ann").api("GET", "/session")["groups"] == ["net1"]
    with served(tmp_path / "data", roles=roles) as third:
        assert third.client("ann").api("GET", "/session")["groups"] == []
        assert third.stranger().ask("GET", "/api/v1/session/provider").status == 404


def test_a_provider_that_is_not_there_or_not_safe_is_told(tmp_path: Path) -> None:
    with served(tmp_path / "data", provider=Provider("http://127.0.0.1:1", "dilaton")) as server:
        answer = server.stranger().ask("GET", "/api/v1/session/provider")
        assert (answer.status, answer.json["type"]) == (502, "urn:dilaton:provider")
    assert not is_safe("http://login.example.org") and not is_safe("file:///etc/passwd")
    (file := tmp_path / "server.yaml").write_text("provider: {issuer: http://login.example.org, client: x}\n")
    with pytest.raises(LabError, match="https"):
        of_file(file)
    file.write_text("provider: {issuer: https://login.example.org, client: x, secret: nowhere}\n")
    with pytest.raises(LabError, match="nowhere"):
        of_file(file)
    (tmp_path / "nowhere").write_text("hush\n")
    assert of_file(file)["provider"] == Provider("https://login.example.org", "x", "hush")
