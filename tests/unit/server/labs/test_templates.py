"""Templates of a server: kept, begun with, and read in workers alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.server.serving import Client, Served, served

LAB = """\
# Two hosts, and a link that is narrow
name: narrow
nodes: {a: {}, b: {}}
links:
  - {endpoints: [a, b], rate: 10Mbit} # the bottleneck
run:
  - {on: a, name: first, exec: "true"}
"""

DESCRIPTION = "parameters:\n  rate: {fields: links.0.rate, about: of the bottleneck}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as found:
        yield found


def keep(client: Client, name: str, text: str = LAB, description: str = DESCRIPTION, status: int = 201) -> Any:
    return client.api("POST", "/templates", {"name": name, "text": text, "description": description}, status)


def test_a_lab_begins_with_a_template_and_has_what_was_chosen_and_all_else_as_it_was(server: Served) -> None:
    owner = server.client()
    made = keep(owner, "narrow")
    assert made["title"] == "Two hosts, and a link that is narrow"
    rate = {"name": "rate", "fields": ["links.0.rate"], "about": "of the bottleneck", "default": "10Mbit"}
    assert made["parameters"] == [rate]
    assert [one["name"] for one in owner.api("GET", "/templates")] == ["narrow"]
    path = f"/templates/{made['template']}/labs"
    lab = owner.api("POST", path, {"name": "My first one!", "chosen": {"rate": "2Mbit", "nodes.a": "{cpu: 1}"}}, 422)
    assert "nodes.a" in lab["detail"] and lab["field"] == "chosen.nodes.a"
    lab = owner.api("POST", path, {"name": "My first one!", "chosen": {"rate": "2Mbit"}})
    assert lab["text"] == LAB.replace("10Mbit", "2Mbit").replace("name: narrow", "name: My-first-one")
    assert lab["version"] == 1 and lab["name"] == "My first one!"


def test_a_value_that_a_field_does_not_take_makes_no_lab_and_its_place_is_told(server: Served) -> None:
    owner = server.client()
    made = keep(owner, "typed")
    before = owner.api("GET", "/labs")
    asked = {"name": "fast", "chosen": {"rate": "fast"}}
    said = owner.api("POST", f"/templates/{made['template']}/labs", asked, 422)
    assert (said["problems"][0]["line"], said["type"]) == (5, "urn:dilaton:lab") and "fast" in said["detail"]
    unknown = {"name": "x", "chosen": {"speed": "1"}}
    said = owner.api("POST", f"/templates/{made['template']}/labs", unknown, 422)
    assert said["field"] == "chosen.speed" and "its parameters: rate" in said["detail"]
    assert owner.api("GET", "/labs") == before


@pytest.mark.parametrize(
    ("text", "description", "told"),
    [
        ("name: x\nnodes: {a: {kind: spaceship}}\n", "", "spaceship"),
        (LAB, "parameters: {rate: {fields: links.7.rate}}", "links.7.rate"),
        (LAB, "parameters: {rate: 3}", "rate"),
        (LAB, "titel: x", "titel"),
        (LAB, "{", "template.yaml:1"),
        (LAB, "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", "template.yaml"),
    ],
)
def test_what_has_mistakes_is_no_template(server: Served, text: str, description: str, told: str) -> None:
    owner = server.client()
    assert told in keep(owner, "wrong", text, description, 422)["detail"]
    assert "wrong" not in [one["name"] for one in owner.api("GET", "/templates")]


def test_a_template_changes_and_the_labs_that_have_begun_with_it_do_not(server: Served) -> None:
    owner = server.client()
    made = keep(owner, "changing")
    path = f"/templates/{made['template']}"
    lab = owner.api("POST", f"{path}/labs", {"name": "mine"})
    assert keep(owner, "changing", status=409)["template"] == made["template"]
    text = LAB.replace("10Mbit", "3Mbit")
    changed = owner.api("PUT", path, {"text": text, "description": "title: Slower\n"})
    assert (changed["title"], changed["parameters"], changed["name"]) == ("Slower", [], "changing")
    assert owner.api("GET", path)["text"] == text
    assert owner.api("GET", f"/labs/{lab['lab']}")["text"] == LAB.replace("narrow\nnodes", "mine\nnodes")
    owner.api("DELETE", path)
    owner.api("GET", path, status=404)
    owner.api("GET", f"/labs/{lab['lab']}")


def test_who_sees_a_template_is_told_of_it_and_begins_with_it_in_a_folder_of_their_own(server: Served) -> None:
    owner = server.client()
    owner.api("POST", "/people", {"name": "ann"})
    path = "/templates?folder=/courses/net1"
    made = owner.api("POST", path, {"name": "exercise", "text": LAB})
    ann = server.client("ann")
    assert ann.api("GET", "/templates") == []
    ann.api("POST", f"/templates/{made['template']}/labs", {"name": "x"}, 404)
    grants = [{"path": "/home/ann", "role": "user"}, {"path": "/courses/net1", "role": "reader"}]
    owner.api("PUT", "/people/ann", {"is_active": True, "grants": grants})
    assert [one["name"] for one in ann.api("GET", "/templates")] == ["exercise"]
    assert ann.api("POST", f"/templates/{made['template']}/labs", {"name": "x"})["folder"] == "/home/ann"
    ann.api("PUT", f"/templates/{made['template']}", {"text": LAB}, 403)
    ann.api("DELETE", f"/templates/{made['template']}", status=403)
    with ann.stream("/events?after=0") as events:
        data = next(data for _, kind, data in events if kind == "template")
    assert data["template"] == made["template"]
    owner.api("DELETE", f"/templates/{made['template']}")
    assert "template.delete" in [one["action"] for one in owner.api("GET", "/audit")]


def test_the_template_of_somebody_sees_no_file_of_the_machine_that_they_may_not_name(server: Served) -> None:
    owner = server.client()
    owner.api("POST", "/people", {"name": "ben"})
    secret = server.settings.directory / "secret.txt"
    secret.write_text("x")
    text = LAB + f"files:\n  a:\n    /x: {{from: {secret}}}\n"
    said = keep(server.client("ben"), "peeks", text, "", 422)
    assert "secret.txt" in said["detail"] or "files" in said["detail"]
