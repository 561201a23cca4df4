"""Quotas of others, as those who look after them see and change them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dilaton.server.access.callers import make_person
from tests.unit.server.serving import ENDLESS, Client, Served, served, use_stub

FILE = """\
groups: {net1: {members: [ann, bea]}, net2: {}}
quotas: {everyone: {at_once: 2, memory: 4GiB}, bea: {cores: 3}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    roles = tmp_path / "roles.yaml"
    roles.write_text(FILE)
    with served(tmp_path / "data", roles=roles, at_once=4) as found:
        with found.state.store.writing() as session:
            for name in ("ann", "bea"):
                make_person(session, name)
        yield found


def told(client: Client) -> dict[str, tuple[Any, ...]]:
    """Who has what, and where that is said."""
    fields = ("kind", "whose", "where")
    return {one["name"]: (*(one[name] for name in fields), limits(one)) for one in client.api("GET", "/quotas")}


def limits(shown: dict[str, Any]) -> dict[str, int]:
    return {name: most for name, most in shown["quota"].items() if most is not None}


def test_everyones_groups_and_each_persons_quota_is_shown_with_where_it_is_said(server: Served) -> None:
    everyone = {"at_once": 2, "memory_bytes": 4 << 30}
    assert told(server.client()) == {
        "everyone": ("everyone", "everyone", "file", everyone),
        "net1": ("group", "", None, {}),
        "net2": ("group", "", None, {}),
        "ann": ("person", "everyone", None, everyone),
        "bea": ("person", "bea", "file", {"cores": 3}),
        "owner": ("person", "everyone", None, everyone),
    }


def test_a_quota_that_is_set_counts_at_once_before_the_file_until_it_is_removed(server: Served) -> None:
    boss, ann = server.client(), server.client("ann")
    set_now = boss.api("PUT", "/quotas/net1", {"at_once": 1, "host_time": "30min", "saved": "1GiB"})
    assert (set_now["kind"], set_now["where"]) == ("group", "set")
    assert limits(set_now) == {"at_once": 1, "host_s": 1800, "saved_bytes": 1 << 30}
    assert limits(ann.api("GET", "/session")) == limits(set_now), "a group's counts before everyone's"
    assert limits(boss.api("PUT", "/quotas/bea", {})) == {}, "nothing said is no bound, whatever the file says"
    assert told(boss)["bea"][1:3] == ("bea", "set")
    back = boss.api("DELETE", "/quotas/bea")
    assert (back["where"], limits(back)) == ("file", {"cores": 3})
    assert boss.api("DELETE", "/quotas/net1")["where"] is None
    assert told(boss)["ann"][1] == "everyone"
    done = [(one["action"], one["path"]) for one in boss.api("GET", "/audit")][:4]
    assert done == [
        ("quota.remove", "/"),
        ("quota.remove", "/home/bea"),
        ("quota.set", "/home/bea"),
        ("quota.set", "/"),
    ]


def test_what_was_set_is_there_after_a_start(server: Served, tmp_path: Path) -> None:
    server.client().api("PUT", "/quotas/ann", {"cores": 7})
    with served(tmp_path / "data", roles=tmp_path / "roles.yaml") as again:
        assert again.state.policy.quota("ann").cores == 7


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"memory": "much"}, "memory"),
        ({"at_once": 0}, "at_once"),
        ({"host_time": "0s"}, "host_time"),
        ({"speed": 1}, "speed"),
    ],
)
def test_what_a_quota_does_not_take_is_named_and_changes_nothing(
    server: Served, asked: dict[str, Any], named: str
) -> None:
    before = told(server.client())
    refused = server.client().api("PUT", "/quotas/ann", asked, status=422)
    assert named in str(refused)
    assert server.client().api("PUT", "/quotas/nobody", {}, status=404)
    assert server.client("ann").api("GET", "/quotas", status=403)
    assert told(server.client()) == before


def test_what_waits_begins_when_more_is_allowed(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stub(monkeypatch)
    boss, ann = server.client(), server.client("ann")
    boss.api("PUT", "/quotas/ann", {"at_once": 1})
    lab = ann.keep(ENDLESS)
    runs = [ann.launch(lab) for _ in range(2)]
    ann.wait(runs[0], "running")
    assert ann.api("GET", f"/runs/{runs[1]}")["state"] == "queued"
    boss.api("PUT", "/quotas/ann", {"at_once": 2})
    ann.wait(runs[1], "running")
    for run in runs:
        ann.api("POST", f"/runs/{run}/stop")
        ann.wait(run, "aborted", "finished")
