"""A lab that is shared: read, operated or changed by others, as far as whoever shares it may, and as long as they want."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config

from dilaton.server.database.store import MIGRATIONS, WRITES, Store, upgrade
from dilaton.server.database.tables import GrantRow, RunRow
from tests.unit.server.serving import ENDLESS, LAB, Served, served, use_stub


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server"), at_once=4) as found:
        use_stub(monkeypatch)
        for name in ("ann", "ben", "eve"):
            found.client().api("POST", "/people", {"name": name})
        yield found


MAY = {
    "reader": {"read"},
    "operator": {"read", "operate"},
    "editor": {"read", "operate", "change"},
    None: set[str](),
}


@pytest.mark.parametrize("role", list(MAY))
def test_who_has_a_share_may_do_what_it_says_and_nothing_else(server: Served, role: str | None) -> None:
    ann, ben = server.client("ann"), server.client("ben")
    lab = ann.keep(ENDLESS)
    run = ann.launch(lab)
    ann.wait(run, "running")
    if role:
        assert ann.api("PUT", f"/labs/{lab}/shares/ben", {"role": role}) == {"person": "ben", "role": role}
    if role:
        # What one may do is told with the lab, alone and listed, so that nothing is offered that would be refused.
        told = [ben.api("GET", f"/labs/{lab}"), *(one for one in ben.api("GET", "/labs") if one["lab"] == lab)]
        assert [one["permissions"] for one in told] == [["Lab.Write"] if role == "editor" else []] * 2
        assert ann.api("GET", f"/labs/{lab}")["permissions"] == ["Lab.Write", "Lab.Delete", "Lab.Share"]
    tried = {
        "read": [("GET", f"/labs/{lab}", None), ("GET", f"/runs/{run}", None), ("GET", f"/runs/{run}/status", None)],
        "operate": [("POST", f"/runs/{run}/hold", {}), ("GET", f"/runs/{run}/files", None)],
        "change": [("PUT", f"/labs/{lab}", {"base": 1, "text": LAB})],
        "never": [
            ("GET", f"/labs/{lab}/shares", None),
            ("PUT", f"/labs/{lab}/shares/eve", {"role": "reader"}),
            ("DELETE", f"/labs/{lab}", None),
            ("DELETE", f"/runs/{run}", None),
            ("POST", f"/labs/{lab}/runs?folder=/home/ann", {}),
        ],
    }
    for what, asked in tried.items():
        for method, path, body in asked:
            status = ben.ask(method, f"/api/v1{path}", body).status
            if what in MAY[role]:
                assert status < 300, (role, method, path, status)
            else:
                assert status == (403 if role else 404), (role, method, path, status)
    assert (run in [one["run"] for one in ben.api("GET", "/runs")]) is bool(role)
    server.client("eve").api("GET", f"/labs/{lab}", status=404)
    ann.api("POST", f"/runs/{run}/stop")


def test_a_share_is_told_at_once_ends_at_once_and_ends_with_its_lab(server: Served) -> None:
    ann, ben = server.client("ann"), server.client("ben")
    lab = ann.keep()
    with ben.stream("/events") as events:
        next(iter(events))
        ann.api("PUT", f"/labs/{lab}/shares/ben", {"role": "reader"})
        data = next(data for _, kind, data in events if kind == "lab")
    assert data["lab"] == lab
    path = ben.api("GET", f"/labs/{lab}")["path"]
    assert ben.api("GET", f"/session/permissions?path={path}") == ["Lab.Read", "Template.Read", "Run.Read"]
    ann.api("PUT", f"/labs/{lab}/shares/ben", {"role": "editor"})
    assert ann.api("GET", f"/labs/{lab}/shares") == [{"person": "ben", "role": "editor"}]
    ann.api("DELETE", f"/labs/{lab}/shares/ben")
    ben.api("GET", f"/labs/{lab}", status=404)
    assert "Lab.Read" not in ben.api("GET", f"/session/permissions?path={path}")
    ann.api("DELETE", f"/labs/{lab}/shares/ben", status=404)
    ann.api("PUT", f"/labs/{lab}/shares/ben", {"role": "editor"})
    run = ann.launch(lab)
    ann.wait(run, "finished")
    ben.api("GET", f"/runs/{run}")
    ann.api("DELETE", f"/labs/{lab}")
    ben.api("GET", f"/runs/{run}", status=404)
    ann.api("GET", f"/runs/{run}")
    with server.state.store.reading() as session:
        assert session.query(GrantRow).where(GrantRow.path.contains(lab)).count() == 0
    entries = server.client().api("GET", "/audit?person=ann")
    assert {"lab.share", "lab.unshare"} <= {entry["action"] for entry in entries}


def test_who_looks_as_soon_as_a_share_is_there_hears_of_it(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    taking_turn = Store._taking_turn

    @contextlib.contextmanager
    def taking_turn_long(store: Store) -> Iterator[None]:
        with taking_turn(store):
            yield
        # It is done, and who has done it does not know that yet; others do, and have all who listen look.
        for _ in range(5):
            server.state.bell.ring()
            time.sleep(0.03)

    ann, ben = server.client("ann"), server.client("ben")
    lab = ann.keep()
    with ben.stream("/events") as events:
        next(iter(events))
        monkeypatch.setattr(Store, "_taking_turn", taking_turn_long)
        ann.api("PUT", f"/labs/{lab}/shares/ben", {"role": "reader"})
        own = ben.keep()
        heard = (data["lab"] for _, kind, data in events if kind == "lab")
        assert next(heard) == lab, "and not only of what comes later"
        assert next(heard) == own


def test_nobody_shares_more_than_they_have_nor_what_was_denied(server: Served) -> None:
    owner, ann, ben = server.client(), server.client("ann"), server.client("ben")
    lab = ann.keep()
    path = ann.api("GET", f"/labs/{lab}")["path"]
    roles: dict[str, list[Any]] = {"ben": [{"path": "/home/ben", "role": "user"}]}

    def grant(person: str, *more: dict[str, Any]) -> None:
        owner.api("PUT", f"/people/{person}", {"is_active": True, "grants": [*roles[person], *more]})

    # Who may do everything with the lab, and nothing with its runs.
    grant("ben", {"path": path, "role": "user"})
    assert ben.api("PUT", f"/labs/{lab}/shares/eve", {"role": "reader"}, 403)["permission"] == "Run.Read"
    ann.api("PUT", f"/labs/{lab}/shares/no-such-person", {"role": "reader"}, 404)
    ann.api("PUT", f"/labs/{lab}/shares/eve", {"role": "administrator"}, 422)
    roles["eve"] = [{"path": "/home/eve", "role": "user"}]
    grant("eve", {"path": path, "role": "reader", "denies": True})
    ann.api("PUT", f"/labs/{lab}/shares/eve", {"role": "reader"}, 409)
    ann.api("DELETE", f"/labs/{lab}/shares/eve", status=404)
    server.client("eve").api("GET", f"/labs/{lab}", status=404)


def test_grants_on_runs_of_an_older_server_are_on_these_runs_still(tmp_path: Path) -> None:
    store = Store(tmp_path / "server.sqlite", upgraded=False)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with store.engine.execution_options(**{WRITES: True}).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "5")
        rows = {
            "people": [("ben", 1, 0)],
            "labs": [("lab1", "/home/ann", "x", 1, 0)],
        }
        for table, values in rows.items():
            marks = ", ".join("?" * len(values[0]))
            connection.exec_driver_sql(f"INSERT INTO {table} VALUES ({marks})", values)
        for run, lab in (("run1", "lab1"), ("run2", None)):
            connection.exec_driver_sql(
                "INSERT INTO runs (identity, folder, person, lab, version, name, text, asked, state, created_ms)"
                " VALUES (?, '/home/ann', 'ann', ?, 1, 'x', '', '{}', 'finished', 0)",
                (run, lab),
            )
        for run in ("run1", "run2", "none"):
            connection.exec_driver_sql(
                "INSERT INTO grants (person, path, role, denies, propagates) VALUES ('ben', ?, 'reader', 0, 1)",
                (f"/home/ann/runs/{run}",),
            )
    upgrade(store.engine)
    with store.reading() as session:
        granted = {row.path for row in session.query(GrantRow)}
        runs = {row.identity: row.path for row in session.query(RunRow)}
    store.close()
    assert granted == {runs["run1"], runs["run2"], "/home/ann/runs/none"}
    assert runs == {"run1": "/home/ann/runs/lab1/run1", "run2": "/home/ann/runs/run2"}
