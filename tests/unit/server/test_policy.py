"""Roles and groups in a file: in force as soon as it is saved, and never by half."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.lab.errors import LabError
from dilaton.server.access.callers import make_person
from dilaton.server.access.policy import Policy
from dilaton.server.access.rules import Access, Grant
from tests.unit.server.serving import Served, served

FILE = """\
roles: {looker: [Lab.Read]}
groups:
  net1:
    members: [ann]
    grants: [{path: /courses/net1, role: ROLE}]
"""


def write(path: Path, text: str) -> None:
    """Writes the file as editors do: another takes its place."""
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "roles.yaml"
    write(path, FILE.replace("ROLE", "looker"))
    return path


@pytest.fixture
def server(file: Path, tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "data", roles=file) as found:
        with found.state.store.writing() as session:
            make_person(session, "ann")
        yield found


def test_a_change_of_the_file_is_in_force_at_once_and_one_with_mistakes_is_none(server: Served, file: Path) -> None:
    boss, ann = server.client(), server.client("ann")
    lab = boss.keep(folder="/courses/net1")
    assert ann.api("GET", "/session")["groups"] == ["net1"]
    assert [one["lab"] for one in ann.api("GET", "/labs")] == [lab]
    assert ann.api("PUT", f"/labs/{lab}", {"base": 1, "text": ""}, status=403)
    write(file, FILE.replace("ROLE", "user"))
    assert ann.api("PUT", f"/labs/{lab}", {"base": 1, "text": ""})["version"] == 2
    for mistake in ("", "roles: [", FILE.replace("ROLE", "no-such-role"), "groups: {net1: {members: [ann], x: 1}}"):
        write(file, mistake)
        assert ann.api("GET", f"/labs/{lab}")["version"] == 2, "what was read last holds"
    file.unlink()
    assert ann.api("GET", f"/labs/{lab}")
    write(file, "groups: {}\n")
    assert ann.api("GET", f"/labs/{lab}", status=404)


def test_people_are_given_roles_of_the_file_too(server: Served) -> None:
    boss = server.client()
    grants = [{"path": "/home/owner", "role": "looker"}]
    assert boss.api("PUT", "/people/ann", {"is_active": True, "grants": grants})["grants"][0]["role"] == "looker"
    lab = boss.keep()
    assert server.client("ann").api("GET", f"/labs/{lab}")
    assert boss.api("PUT", "/people/ann", {"is_active": True, "grants": [{"path": "/", "role": "x"}]}, status=422)


def test_a_denial_of_a_role_that_is_gone_denies_everything_and_a_grant_of_it_gives_nothing() -> None:
    own = Grant("/home/ann", "user")
    assert not Access((own, Grant("/home/ann", "gone", denies=True))).may("Lab.Read", "/home/ann")
    assert not Access((Grant("/home/ann", "gone"),)).may("Lab.Read", "/home/ann")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("roles: {owner: [Lab.Raed]}", "1:8: roles"),
        ("roles: {user: ['*']}", "1:8: roles"),
        ("groups: {g: {members: [Ann]}}", "1:24: groups.g.members[0]"),
        ("groups: {g: {grants: [{path: x, role: user}]}}", "1:30: groups.g.grants[0].path"),
    ],
)
def test_a_mistake_in_the_file_has_its_place(text: str, where: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(LabError) as error:
        Policy(file)
    assert f"{file}:{where}" in str(error.value)


def test_a_time_of_less_than_a_second_is_one_and_none_at_all_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "roles.yaml"
    for said, host_s in (("10ms", 1), ("1s", 1), ("1500ms", 2), ("1h", 3600)):
        write(path, f"quotas: {{everyone: {{host_time: {said}}}}}\n")
        assert Policy(path).quota("ann").host_s == host_s
    write(path, "quotas: {everyone: {host_time: 0s}}\n")
    with pytest.raises(LabError, match="host_time"):
        Policy(path)
