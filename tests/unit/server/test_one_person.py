"""A server for one person: logging in by a link, labs with versions, runs from the queue to their report, events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.run.control.answers import SHOW
from dilaton.run.control.requests import Client as Control
from dilaton.server.serve import OWNER
from dilaton.service.launch import BEHIND
from tests.unit.server.serving import ENDLESS, LAB, Served, served, use_stub


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server")) as found:
        use_stub(monkeypatch)
        yield found


def test_a_link_lets_in_once_and_is_used_up_by_who_logs_in_alone(server: Served) -> None:
    once = server.state.one_time.make(OWNER)
    browser = server.stranger()
    for _ in range(2):
        shown = browser.ask("GET", f"/login?once={once}")
        assert once not in shown.body.decode() and "set-cookie" not in shown.headers
    form = browser.ask("POST", "/api/v1/session", f"once={once}".encode(), **{"Content-Type": "text/plain"})
    assert form.status == 422, "a form of somebody else's page logs nobody in"
    let_in = browser.ask("POST", "/api/v1/session", {"once": once})
    assert let_in.status == 204
    cookie = let_in.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
    mine = {"Cookie": cookie.partition(";")[0], "Origin": server.settings.origin}
    assert browser.ask("GET", "/api/v1/session", **mine).json["name"] == OWNER
    assert browser.ask("POST", "/api/v1/session", {"once": once}).status == 401
    assert browser.ask("DELETE", "/api/v1/session", **mine).status == 204
    assert browser.ask("GET", "/api/v1/session", **mine).status == 401


def test_a_login_makes_a_new_secret_and_takes_none_that_was_sent_with_it(server: Served) -> None:
    once = server.state.one_time.make(OWNER)
    sent = server.stranger().ask("POST", "/api/v1/session", {"once": once}, Cookie="dilaton=chosen-by-a-stranger")
    assert sent.status == 204 and "chosen-by-a-stranger" not in sent.headers["set-cookie"]
    again = server.stranger().ask("GET", "/api/v1/session", Cookie="dilaton=chosen-by-a-stranger")
    assert again.status == 401


def test_versions_of_a_lab_follow_each_other_and_none_is_overwritten(server: Served) -> None:
    me = server.client()
    lab = me.keep("first")
    assert me.api("PUT", f"/labs/{lab}", {"base": 1, "text": "second"})["version"] == 2
    stale = me.api("PUT", f"/labs/{lab}", {"base": 1, "text": "third"}, status=409)
    assert (stale["version"], stale["text"]) == (2, "second")
    assert [one["version"] for one in me.api("GET", f"/labs/{lab}/versions")] == [1, 2]
    assert me.api("GET", f"/labs/{lab}?version=1")["text"] == "first"
    assert lab in [one["lab"] for one in me.api("GET", "/labs")]
    me.api("DELETE", f"/labs/{lab}")
    assert me.api("GET", f"/labs/{lab}", status=404)["type"] == "urn:dilaton:missing"


def test_mistakes_are_told_with_their_places(server: Served) -> None:
    me = server.client()
    found = me.api("POST", "/check", {"text": LAB.replace("a -- b", "a -- c")}, status=422)
    assert found["type"] == "urn:dilaton:lab"
    assert [(one["line"], one["column"]) for one in found["problems"]] == [(3, 9)]
    assert me.api("POST", "/check", {"text": LAB})["name"] == "tiny"
    lab = me.keep("nodes: [")
    assert me.api("POST", f"/labs/{lab}/runs", {}, status=422)["problems"]
    wrong = me.api("POST", "/check", {"text": LAB, "overrides": {"tdf": "fast"}}, status=422)
    assert (wrong["type"], wrong["field"]) == ("urn:dilaton:argument", "tdf")


def test_a_run_goes_from_the_queue_to_its_report_and_is_told_on_the_way(server: Served) -> None:
    me = server.client()
    lab = me.keep()
    with me.stream("/events") as events:
        begin, kind, _ = next(events)
        assert kind == "ready"
        run = me.launch(lab)
        states = []
        for _, kind, data in events:
            if kind == "run" and data["run"] == run:
                states.append(data["state"])
                if data["state"] == "finished":
                    break
    assert states[:2] == ["queued", "starting"] and states[-1] == "finished"
    with me.stream("/events", last=begin) as events:
        again = [next(events) for _ in range(len(states) + 1)]
    assert [data["state"] for _, kind, data in again if kind == "run"] == states
    numbers = [int(number) for number, *_ in again]
    assert numbers == sorted(set(numbers))
    shown = me.api("GET", f"/runs/{run}")
    record = me.api("GET", f"/runs/{run}/record")
    assert (record["state"], record["verdict"]["level"]) == ("finished", shown["verdict"])
    assert shown["virtual_s"] == record["time"]["virtual_s"] > 0 and shown["person"] == OWNER
    report = me.ask("GET", f"/api/v1/runs/{run}/report")
    assert report.status == 200 and "sandbox" in report.headers["content-security-policy"]
    assert b"tiny: finished" in me.ask("GET", f"/api/v1/runs/{run}/journal").body
    files = {one["path"] for one in me.api("GET", f"/runs/{run}/files")}
    assert {"run.json", "plan.json", "events.jsonl"} <= files
    fetched = me.ask("GET", f"/api/v1/runs/{run}/files/plan.json")
    assert fetched.json["lab"] == "tiny" and fetched.headers["content-disposition"].startswith("attachment")
    assert me.api("GET", f"/runs/{run}/lab")["text"] == LAB
    assert me.api("POST", f"/runs/{run}/hold", status=409)["type"] == "urn:dilaton:run-refused"
    me.api("DELETE", f"/runs/{run}")
    assert not (server.settings.runs / run).exists()


def test_a_run_is_steered_and_stopped(server: Served) -> None:
    me = server.client()
    run = me.launch(me.keep(ENDLESS), hold_at="0s")
    me.wait(run, "held")
    status = me.api("GET", f"/runs/{run}/status")
    assert (status["clock"]["held"], status["verdict"]) == (True, None), "in the first second nothing is told yet"
    assert [one["link"] for one in me.api("GET", f"/runs/{run}/links")["links"]] == ["a:eth0--b:eth0"]
    assert me.api("POST", f"/runs/{run}/tdf", {"tdf": "7"})["tdf"] == 7
    assert me.api("POST", f"/runs/{run}/speed", {"max_speed": "2"})["max_speed"] == 2
    assert me.api("POST", f"/runs/{run}/speed", {"max_speed": "fast"}, status=422)["type"] == "urn:dilaton:run-argument"
    assert me.api("POST", f"/runs/{run}/speed", {"max_speed": None})["max_speed"] is None
    assert me.api("POST", f"/runs/{run}/until", {"at": "5"}, status=422)["type"] == "urn:dilaton:run-argument"
    assert not me.api("POST", f"/runs/{run}/release")["held"]
    me.wait(run, "running")
    assert me.api("DELETE", f"/runs/{run}", status=409)["state"] == "running"
    with me.stream(f"/runs/{run}/happenings") as happenings:
        number, kind, _ = next(happenings)
        assert (number, kind) == ("1", "state")
        second = next(happenings)
    with me.stream(f"/runs/{run}/happenings", last="1") as happenings:
        assert next(happenings) == second
    me.api("POST", f"/runs/{run}/stop")
    assert me.wait(run, "aborted", "finished", "failed")["state"] == "aborted"


def test_a_run_lets_the_server_go_first(server: Served) -> None:
    me = server.client()
    run = me.launch(me.keep(ENDLESS))
    me.wait(run, "running")
    with Control(server.settings.runs / run / "run") as control:
        pid = control.request(SHOW)["pid"]
    nicest = 19
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(nicest, os.getpriority(os.PRIO_PROCESS, 0) + BEHIND)
    me.api("POST", f"/runs/{run}/stop")
    me.wait(run, "aborted")


def test_runs_wait_for_their_turn_and_may_be_cancelled(server: Served) -> None:
    me = server.client()
    lab = me.keep(ENDLESS)
    going = [me.launch(lab) for _ in range(server.settings.at_once)]
    waiting = [me.launch(lab) for _ in range(2)]
    for run in going:
        me.wait(run, "running")
    assert [me.api("GET", f"/runs/{run}")["state"] for run in waiting] == ["queued", "queued"]
    me.api("POST", f"/runs/{waiting[0]}/stop")
    assert me.api("GET", f"/runs/{waiting[0]}")["state"] == "cancelled"
    assert me.api("POST", f"/runs/{waiting[0]}/stop", status=409)
    me.api("POST", f"/runs/{going[0]}/stop")
    me.wait(waiting[1], "running")
    listed = me.api("GET", f"/runs?lab={lab}")
    assert [one["run"] for one in listed] == [waiting[1], waiting[0], going[1], going[0]]
    assert [one["run"] for one in me.api("GET", f"/runs?lab={lab}&state=cancelled")] == [waiting[0]]
    for run in (going[1], waiting[1]):
        me.api("POST", f"/runs/{run}/stop")
        me.wait(run, "aborted")


def test_the_server_is_well_and_describes_itself(server: Served) -> None:
    assert server.stranger().ask("GET", "/healthz").json["status"] == "ok"
    described = server.stranger().ask("GET", "/openapi.json").json
    assert "/api/v1/runs/{run}" in described["paths"]


def test_data_are_the_users_alone(server: Served) -> None:
    for path in (Path(server.settings.directory), server.settings.database):
        assert path.stat().st_mode & 0o077 == 0, path
