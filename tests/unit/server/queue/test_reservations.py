"""Places that are kept for a class: who begins in them, from when until when, and who may have them kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.server.access.callers import make_person
from dilaton.server.database.actions import now_ms
from dilaton.server.runs.queue import Going, Needs, Quota, Reserved, Waiting, chosen
from tests.unit.server.serving import ENDLESS, LAB, Served, served, use_stub

CLASS = Reserved("/courses/net1", places=2, from_ms=10_000, until_ms=20_000)


def waiting(*folders: str, host_s: int | None = None) -> list[Waiting]:
    needs = Needs(cores=1, host_s=host_s)
    return [Waiting(f"{n}", n, f"person{n}", needs, folder=folder) for n, folder in enumerate(folders)]


def begun(ones: list[Waiting], going: list[Going], now_ms: int, at_once: int = 3) -> list[str]:
    return chosen(ones, going, {}, lambda _: Quota(), at_once, [CLASS], now_ms)


def test_a_class_finds_its_places_free_in_its_time_alone() -> None:
    others = ["/home/ann", "/courses/net10", "/courses/net1/groups", "/courses/net1"]
    assert begun(waiting(*others), [], 15_000) == ["0", "2", "3"], "one for others, two for the class"
    assert begun(waiting(*others), [], 9_999) == begun(waiting(*others), [], 20_000) == ["0", "1", "2"]
    mine = [Going("x", Needs(), "/courses/net1")]
    assert begun(waiting("/home/ann", "/home/ben"), mine, 15_000) == ["0"], "one of its places is still to be kept"
    assert begun(waiting("/home/ann", "/home/ben"), mine * 2, 15_000) == ["0"], "none is, and one is left"


def test_a_run_that_would_reach_into_it_leaves_its_places_free_before() -> None:
    assert begun(waiting("/home/ann", "/home/ben", host_s=5), [], 4_999) == ["0", "1"]
    assert begun(waiting("/home/ann", "/home/ben", host_s=5), [], 5_000) == ["0"]
    assert begun(waiting("/home/ann", "/home/ben"), [], 9_999) == ["0", "1"], "nobody knows how long these go on"


@given(
    st.lists(st.sampled_from(["/home/ann", "/courses/net1", "/courses/net1/a", "/courses"]), max_size=12),
    st.integers(1, 6),
    st.integers(0, 25_000),
)
def test_others_never_take_a_place_that_is_kept_and_no_place_is_left_for_nobody(
    folders: list[str], at_once: int, now: int
) -> None:
    names = begun(waiting(*folders), [], now, at_once)
    taken = [folders[int(name)] for name in names]
    ours = sum(CLASS.is_of(folder) for folder in taken)
    lasts = CLASS.concerns(now, None)
    others = len(taken) - ours
    assert others <= (max(0, at_once - CLASS.places) if lasts else at_once)
    left = [folder for number, folder in enumerate(folders) if str(number) not in names]
    if any(CLASS.is_of(folder) or not lasts for folder in left):
        assert len(taken) == at_once, "who may begin is not kept waiting beside a free place"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch, served(tmp_path, at_once=1) as found:
        use_stub(patch)
        with found.state.store.writing() as session:
            make_person(session, "ann")
        yield found


def test_places_are_kept_by_who_may_and_runs_of_others_wait_until_they_are_given_up(server: Served) -> None:
    boss, ann = server.client(), server.client("ann")
    now = now_ms()
    asked = {"folder": "/courses/net1", "from_ms": now - 1000, "until_ms": now + 3_600_000, "places": 1}
    ann.api("POST", "/reservations", asked, status=403)
    made = boss.api("POST", "/reservations", asked)
    assert made == asked | {"reservation": made["reservation"], "person": "owner"}
    assert boss.api("GET", "/reservations") == [made] and ann.api("GET", "/reservations") == []
    assert "1 runs go on at once" in boss.api("POST", "/reservations", asked, status=409)["detail"]
    for wrong in (
        {"until_ms": now - 1},
        {"until_ms": now + 8 * 86_400_000},
        {"from_ms": now + 400 * 86_400_000, "until_ms": now + 400 * 86_400_000 + 1},
        {"folder": "/"},
        {"places": 0},
    ):
        boss.api("POST", "/reservations", asked | wrong, status=422)
    waits = ann.launch(ann.keep(LAB))
    lab = boss.keep(ENDLESS)
    ours = str(boss.api("POST", f"/labs/{lab}/runs?folder=/courses/net1", {})["run"])
    boss.wait(ours, "running")
    boss.api("POST", f"/runs/{ours}/stop")
    boss.wait(ours, "aborted", "finished")
    assert ann.api("GET", f"/runs/{waits}")["state"] == "queued", (
        "the place is kept, also when the class does not use it"
    )
    boss.api("DELETE", f"/reservations/{made['reservation']}")
    boss.api("DELETE", f"/reservations/{made['reservation']}", status=404)
    ann.wait(waits, "finished")


def test_a_run_that_waits_for_the_end_of_a_reservation_begins_then(server: Served) -> None:
    boss, ann = server.client(), server.client("ann")
    until = now_ms() + 3000
    boss.api(
        "POST", "/reservations", {"folder": "/courses/x", "from_ms": 0, "until_ms": until, "places": 1}, status=422
    )
    asked = {"folder": "/courses/x", "from_ms": until - 10_000, "until_ms": until, "places": 1}
    boss.api("POST", "/reservations", asked)
    shown = ann.wait(ann.launch(ann.keep(LAB)), "finished")
    assert shown["started_ms"] >= until
