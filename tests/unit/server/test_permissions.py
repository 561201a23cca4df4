"""Every endpoint by role and ownership, generated from the description of the API: what a rule says is what happens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from dilaton.server.access.callers import make_person
from dilaton.server.access.rules import PERMISSIONS, ROLES, Access, Grant, matches
from dilaton.server.app import ENDPOINTS, described
from dilaton.server.database.actions import now_ms
from dilaton.server.database.tables import GrantRow, SweepRow, TemplateRow
from tests.unit.server.serving import HANDSHAKE, LAB, Answer, Client, Served, run_row, served

OWNER_OF_THINGS = "olga"
FOLDER = f"/home/{OWNER_OF_THINGS}"
IDENTITY = "0123456789abcdef"
TEMPLATE = "fedcba9876543210"
SWEEP = "0f1e2d3c4b5a6978"

PUBLIC = {
    ("GET", "/healthz"),
    ("GET", "/openapi.json"),
    ("GET", "/api/v1/schema/lab"),
    ("POST", "/api/v1/session"),
    ("GET", "/api/v1/session/ways"),
    ("GET", "/api/v1/session/provider"),
    ("GET", "/api/v1/session/provider/back"),
    ("GET", "/"),
    ("GET", "/page/{name}"),
    ("GET", "/login"),
}
"""What anybody may ask: a list of its own, so that nothing becomes public by a slip."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a person for each role on the folder of another, and one with nothing."""
    with served(tmp_path_factory.mktemp("server"), at_once=1) as found:
        with found.state.store.writing() as session:
            make_person(session, OWNER_OF_THINGS)
            make_person(session, "nobody")
            for role in ROLES:
                make_person(session, role)
                session.add(GrantRow(person=role, path=FOLDER, role=role, denies=False, propagates=True))
                session.add(GrantRow(person=role, path="/", role=role, denies=False, propagates=False))
            session.add(run_row(IDENTITY, "cancelled", OWNER_OF_THINGS, folder=FOLDER))
            session.add(
                SweepRow(
                    identity=SWEEP,
                    folder=FOLDER,
                    person=OWNER_OF_THINGS,
                    version=1,
                    name="tiny",
                    fields=[],
                    repeat=1,
                    created_ms=now_ms(),
                )
            )
            session.add(
                TemplateRow(
                    identity=TEMPLATE,
                    folder=FOLDER,
                    name="tiny",
                    title="",
                    text=LAB,
                    description="",
                    parameters=[],
                    person=OWNER_OF_THINGS,
                    changed_ms=now_ms(),
                )
            )
        yield found


def operations(server: Served) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """All operations of the description: method, path and what is said of them."""
    description = described(server.state).openapi()
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation
    for path, operation in description["x-websockets"].items():
        yield "WEBSOCKET", path, operation


def test_nothing_can_be_asked_but_endpoints_and_each_has_its_rule(server: Served) -> None:
    routes = {
        (method, route.path)  # type: ignore[attr-defined]
        for route in described(server.state).routes
        for method in getattr(route, "methods", ["WEBSOCKET"])
    }
    assert routes == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    assert {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS if endpoint.rule.is_public} == PUBLIC
    shown = {(method, path): operation["x-rule"] for method, path, operation in operations(server)}
    hidden = {(one.method, one.path) for one in ENDPOINTS if one.options.get("include_in_schema") is False}
    assert hidden <= PUBLIC, "only pages without data are not described"
    # The description has no place for what a parameter may contain.
    rules = {(one.method, one.path.replace(":path", "")): one.rule.words() for one in ENDPOINTS}
    assert shown == {key: words for key, words in rules.items() if key not in hidden}


def asked(path: str, lab: str, rule: dict[str, Any]) -> str:
    """An operation's path for the things of `OWNER_OF_THINGS`."""
    names = {
        "lab": lab,
        "run": IDENTITY,
        "person": "no-such-person",
        "token": "no-such-token",
        "door": "none",
        "tunnel": "none",
        "path": "run.json",
    }
    names |= {"name": "none"}
    names |= {
        "terminal": "no-such-terminal",
        "template": TEMPLATE,
        "image": "none",
        "pull": "no-such-pull",
        "reservation": "no-such-reservation",
        "sweep": SWEEP,
        "holder": "no-such-person",
    }
    found = re.sub(r"\{(\w+)(:path)?\}", lambda name: names[name[1]], path)
    return f"{found}?folder={FOLDER}" if any(need["of"] == "folder" for need in rule["needs"]) else found


def expected(rule: dict[str, Any], access: Access) -> int:
    """The status by which somebody is refused; 0: they are not."""
    for need in rule["needs"]:
        seen = {"lab": "Lab.Read", "run": "Run.Read", "sweep": "Run.Read", "template": "Template.Read"}.get(need["of"])
        path = "/" if need["of"] == "server" else FOLDER
        if need["of"] == "each":
            continue
        if seen and not access.may(seen, FOLDER):
            return 404
        if not access.may(need["permission"], path):
            return 403
    return 0


def answered(client: Client, method: str, path: str) -> int:
    """What comes back for a body that no endpoint takes, so that nothing changes by it."""
    body = b'"nothing that is taken"' if method in ("POST", "PUT") else None
    return ask(client, method, path, body, **({"Content-Type": "application/json"} if body else {})).status


def ask(client: Client, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
    """What comes back, of a WebSocket to its handshake."""
    if method == "WEBSOCKET":
        return client.ask("GET", path, **HANDSHAKE, **headers)
    return client.ask(method, path, body, **headers)


@pytest.mark.parametrize("person", [*ROLES, OWNER_OF_THINGS, "nobody"])
def test_a_rule_lets_in_whom_it_names_and_nobody_else(person: str, server: Served) -> None:
    own = Grant(f"/home/{person}", "user")
    grants = (own, Grant(FOLDER, person), Grant("/", person, propagates=False)) if person in ROLES else (own,)
    access = Access(grants)
    client = server.client(person)
    tried = 0
    for method, path, operation in operations(server):
        rule = operation["x-rule"]
        # Streams have no end, deleting would leave nothing for the others, and logging out would be the last thing.
        if rule["public"] or path.endswith(("/events", "/happenings")) or method == "DELETE":
            continue
        lab = server.client(OWNER_OF_THINGS).keep() if "{lab}" in path else ""
        status = answered(client, method, asked(path, lab, rule))
        refusal = expected(rule, access)
        tried += 1
        if refusal:
            assert status == refusal, (method, path)
        else:
            # Not refused by the rule: it is only then that what was asked is looked at.
            assert status != 401 and status != 403 and status < 500, (method, path, status)
    assert tried > 25


@pytest.mark.parametrize("person", [*ROLES, OWNER_OF_THINGS, "nobody"])
def test_only_who_may_delete_deletes(person: str, server: Served) -> None:
    owner = server.client(OWNER_OF_THINGS)
    lab = owner.keep()
    grants = (Grant(FOLDER, person), Grant(f"/home/{person}", "user"))
    refusal = expected({"needs": [{"permission": "Lab.Delete", "of": "lab"}]}, Access(grants))
    assert server.client(person).ask("DELETE", f"/api/v1/labs/{lab}").status == (refusal or 204)
    assert owner.ask("GET", f"/api/v1/labs/{lab}").status == (200 if refusal else 404)


def test_every_operation_refuses_who_is_not_logged_in_and_names_no_reason_to_guess(server: Served) -> None:
    for method, path, operation in operations(server):
        if not operation["x-rule"]["public"]:
            refused = ask(server.stranger(), method, asked(path, "no-such-lab", operation["x-rule"]))
            assert (refused.status, refused.json["type"]) == (401, "urn:dilaton:login"), (method, path)


def test_lists_and_events_have_what_one_may_see_and_nothing_else(server: Served) -> None:
    lab = server.client(OWNER_OF_THINGS).keep()
    for person in (*ROLES, OWNER_OF_THINGS, "nobody"):
        sees = person == OWNER_OF_THINGS or matches("Lab.Read", ROLES.get(person, ()))
        client = server.client(person)
        assert (lab in [one["lab"] for one in client.api("GET", "/labs")]) is sees, person
        assert (IDENTITY in [one["run"] for one in client.api("GET", "/runs")]) is sees, person
        own = client.keep()
        with client.stream("/events?after=0") as events:
            told = set()
            for _, kind, data in events:
                told.add(data.get("lab"))
                if kind == "lab" and data["lab"] == own:
                    break
        assert (lab in told) is sees, person


def test_a_token_does_what_its_scopes_say_of_what_its_owner_may_and_makes_no_other(server: Served) -> None:
    owner = server.client(OWNER_OF_THINGS)
    lab = owner.keep()
    token = owner.api("POST", "/tokens", {"label": "reads", "scopes": ["Lab.Read"], "days": 1})
    program = Client(server.settings, {"Authorization": f"Bearer {token['secret']}"})
    assert program.api("GET", f"/labs/{lab}")["lab"] == lab
    assert program.api("DELETE", f"/labs/{lab}", status=403)["permission"] == "Lab.Delete"
    assert program.api("GET", f"/runs/{IDENTITY}", status=404)
    assert program.api("POST", "/tokens", {"label": "more", "scopes": ["*"], "days": 1}, status=403)
    all_of_nobody = server.client("nobody").api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})
    stranger = Client(server.settings, {"Authorization": f"Bearer {all_of_nobody['secret']}"})
    assert stranger.api("GET", f"/labs/{lab}", status=404)
    assert token["secret"] not in json.dumps(owner.api("GET", "/tokens"))
    assert owner.api("POST", "/tokens", {"label": "x", "scopes": ["Lab.Raed"], "days": 1}, status=422)
    server.client("nobody").api("DELETE", f"/tokens/{token['token']}", status=404)
    owner.api("DELETE", f"/tokens/{token['token']}")
    assert program.api("GET", f"/labs/{lab}", status=401)


def test_people_are_let_in_by_a_link_and_what_they_may_do_changes_at_once(server: Served) -> None:
    boss = server.client("owner")
    boss.api("POST", "/people", {"name": "ann"})
    assert boss.api("POST", "/people", {"name": "ann"}, status=409)
    once = boss.api("POST", "/people/ann/link")["url"].partition("once=")[2]
    let_in = server.stranger().ask("POST", "/api/v1/session", {"once": once})
    ann = Client(
        server.settings, {"Cookie": let_in.headers["set-cookie"].partition(";")[0], "Origin": server.settings.origin}
    )
    lab = server.client(OWNER_OF_THINGS).keep()
    assert ann.api("GET", f"/labs/{lab}", status=404)
    grants = [{"path": f"{FOLDER}/labs/{lab}", "role": "reader"}, {"path": "/home/ann", "role": "user"}]
    boss.api("PUT", "/people/ann", {"is_active": True, "grants": grants})
    assert [one["lab"] for one in ann.api("GET", "/labs")] == [lab], "one lab of a folder can be shared"
    assert ann.api("PUT", f"/labs/{lab}", {"base": 1, "text": ""}, status=403)
    boss.api("PUT", "/people/ann", {"is_active": False, "grants": grants})
    assert ann.api("GET", "/session", status=401)
    done = boss.api("GET", "/audit?person=owner")
    assert [one["action"] for one in done][:4] == ["person.change", "person.change", "person.link", "person.make"]
    assert set(PERMISSIONS) == set(boss.api("GET", "/session")["everywhere"])
