"""Which run begins next, and what somebody has to approve: priorities, quotas, fair shares, requests, time limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, select

from dilaton.run.control.errors import ControlError
from dilaton.server.access.callers import make_person
from dilaton.server.database.tables import RunRow
from dilaton.server.runs import keeper, shares
from dilaton.server.runs.queue import Going, Needs, Quota, Waiting, chosen
from tests.unit.server.serving import ENDLESS, LAB, Served, run_row, served, use_stub

QUOTAS = """\
quotas:
  everyone: {at_once: 1, cores: 1, memory: 4GiB, host_time: 1h}
  ben: {cores: 1, memory: 8MiB}
groups: {helpers: {members: [tom], grants: [{path: /home/ann, role: teacher}]}}
"""

ONE = Needs(cores=1, memory_bytes=1)


def waiting(*people: str, **others: int) -> list[Waiting]:
    """Runs that wait, in their order; `others` are their priorities by name."""
    return [
        Waiting(f"{person}{number}", number, person, ONE, others.get(f"{person}{number}", 0))
        for number, person in enumerate(people)
    ]


def test_priority_then_who_has_least_going_then_who_has_used_least_then_the_first() -> None:
    def order(ones: list[Waiting], going: list[Going], used: dict[str, int]) -> list[str]:
        return chosen(ones, going, used, lambda _: Quota(), 10)

    assert order(waiting("a", "a", "a", "b"), [], {}) == ["a0", "b3", "a1", "a2"]
    assert order(waiting("a", "b"), [], {"a": 5, "b": 4}) == ["b1", "a0"]
    assert order(waiting("a", "b"), [Going("a", ONE)], {"b": 9}) == ["b1", "a0"]
    assert order(waiting("a", "b", "a", a2=1), [], {}) == ["a2", "b1", "a0"]


def test_who_has_used_up_their_quota_waits_and_keeps_nobody_else() -> None:
    quota = {"a": Quota(at_once=1), "b": Quota(cores=2), "c": Quota()}.__getitem__
    assert chosen(waiting("a", "a", "b", "b", "b", "c"), [], {}, quota, 10) == ["a0", "b2", "c5", "b3"]
    approved = [Waiting("a0", 0, "a", ONE), Waiting("a1", 1, "a", ONE, is_approved=True)]
    assert chosen(approved, [Going("a", ONE)], {}, quota, 10) == ["a1"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(-2, 2)), max_size=12),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_no_more_begin_than_may_and_none_waits_in_vain(
    runs: list[tuple[str, int, int]], at_once: int, cores: int
) -> None:
    ones = [
        Waiting(str(number), number, person, Needs(cores=needed), priority)
        for number, (person, needed, priority) in enumerate(runs)
    ]
    begun = chosen(ones, [], {}, lambda _: Quota(cores=cores), at_once)
    of = {one.identity: one for one in ones}
    assert len(begun) == len(set(begun)) <= at_once
    for person in "abc":
        used = sum(of[one].needs.cores for one in begun if of[one].person == person)
        assert used <= cores
        if len(begun) < at_once:
            left = [one for one in ones if one.person == person and one.identity not in begun]
            assert all(used + one.needs.cores > cores for one in left)


def test_what_is_not_said_is_beyond_any_bound() -> None:
    assert Quota().beyond(ONE) == []
    assert Quota(cores=1, disk_bytes=5).beyond(ONE) == ["None bytes of disk, 5 without approval"]
    assert Quota(cores=1, host_s=10).beyond(Needs(cores=2, host_s=11)) == [
        "2 cores, 1 without approval",
        "11 seconds of the host, 10 without approval",
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("server")
    roles: Path = directory / "roles.yaml"
    roles.write_text(QUOTAS)
    with pytest.MonkeyPatch.context() as patch, served(directory / "data", at_once=3, roles=roles) as found:
        use_stub(patch)
        with found.state.store.writing() as session:
            for person in ("ann", "ben", "tom"):
                make_person(session, person)
        yield found


def test_a_run_beyond_its_quota_waits_until_somebody_approves_it(server: Served) -> None:
    ann, tom = server.client("ann"), server.client("tom")
    lab = ann.keep()
    run = ann.launch(lab, host_s=7200)
    shown = ann.api("GET", f"/runs/{run}")
    assert (shown["state"], shown["reason"]) == ("requested", "7200 seconds of the host, 3600 without approval")
    assert ann.api("POST", f"/runs/{run}/approve", {}, status=403)["permission"] == "Request.Approve"
    assert server.client("ben").api("POST", f"/runs/{run}/approve", {}, status=404)
    assert [one["run"] for one in tom.api("GET", "/runs?state=requested")] == [run]
    assert tom.api("POST", f"/runs/{run}/approve", {"priority": 5})["state"] == "queued"
    assert ann.wait(run, "finished", "failed", "refused")["state"] == "finished"
    assert tom.api("POST", f"/runs/{run}/approve", {}, status=409)["state"] == "finished"
    assert ann.api("GET", "/session")["quota"]["host_s"] == 3600
    within = ann.launch(lab, host_s=60)
    assert ann.wait(within, "finished", "requested")["state"] == "finished"


def test_a_request_is_refused_with_a_reason_or_cancelled(server: Served) -> None:
    ann, tom, ben = server.client("ann"), server.client("tom"), server.client("ben")
    run = ann.launch(ann.keep(), host_s=7200)
    assert tom.api("POST", f"/runs/{run}/refuse", {"reason": ""}, status=422)
    tom.api("POST", f"/runs/{run}/refuse", {"reason": "use two guests"})
    shown = ann.api("GET", f"/runs/{run}")
    assert (shown["state"], shown["reason"]) == ("refused", "tom: use two guests")
    entry = server.client().api("GET", "/audit?action=run.refuse&count=1")[0]
    assert (entry["person"], entry["data"]) == ("tom", {"reason": "use two guests"})
    other = ben.launch(ben.keep())
    assert "bytes of memory" in ben.api("GET", f"/runs/{other}")["reason"]
    ben.api("POST", f"/runs/{other}/stop")
    assert ben.api("GET", f"/runs/{other}")["state"] == "cancelled"


def test_who_may_approve_needs_no_approval(server: Served) -> None:
    boss = server.client()
    run = boss.launch(boss.keep(), host_s=7200)
    with server.state.store.reading() as session:
        # Else the bounds that it is beyond would keep it waiting for ever.
        assert session.scalar(select(RunRow.is_approved).where(RunRow.identity == run))
    assert boss.wait(run, "finished", "requested")["state"] == "finished"


def test_a_run_ends_when_its_time_is_over(server: Served) -> None:
    ann = server.client("ann")
    run = ann.launch(ann.keep(ENDLESS), stays=True, host_s=1)
    assert ann.wait(run, "finished", "aborted", "failed")["state"] != "failed"
    entry = server.client().api("GET", "/audit?action=run.limit&count=1")[0]
    assert entry["path"].endswith(run) and entry["data"] == {"host_s": 1}


def test_a_run_that_did_not_hear_that_its_time_is_over_is_told_again(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    stops, stop = [], server.state.keeper.stop

    async def deaf(row: RunRow) -> None:
        stops.append(row.identity)
        if len(stops) < 3:
            raise ControlError("does not answer") if len(stops) == 1 else ConnectionResetError("gone")
        await stop(row)

    monkeypatch.setattr(keeper, "STOP_AGAIN_HOST_S", 0.05)
    monkeypatch.setattr(server.state.keeper, "stop", deaf)
    ann = server.client("ann")
    run = ann.launch(ann.keep(ENDLESS), stays=True, host_s=1)
    assert ann.wait(run, "finished", "aborted", "failed")["state"] != "failed"
    assert len(stops) >= 3 and set(stops) == {run}


def test_of_a_time_before_and_beyond_what_counts_only_the_part_within_counts(server: Served) -> None:
    now = 100 * shares.LATELY_MS
    spans = {
        "d": [(now - shares.LATELY_MS - 5000, now - shares.LATELY_MS + 1000)],  # most of it is long ago
        "e": [(now - 7000, None)],  # goes on
        "f": [(now - 2000, now - 500), (0, 100), (None, now)],  # and one of long ago, and one that was cancelled
    }
    rows = [
        run_row(
            f"{person}{number}",
            "running" if ended is None else "finished",
            person,
            started_ms=started,
            ended_ms=ended,
        )
        for person, times in spans.items()
        for number, (started, ended) in enumerate(times)
    ]
    with server.state.store.writing() as session:
        session.execute(delete(RunRow))
        session.add_all(rows)
        session.flush()
        used = shares.used_ms(session, now)
        session.rollback()  # nothing of it was ever there
    assert used == {"d": 1000, "e": 7000, "f": 1500}


def test_who_asks_twice_by_one_key_gets_one_run(server: Served) -> None:
    boss, ann = server.client(), server.client("ann")
    lab = boss.keep(LAB)
    one, again, other = (boss.launch(lab, key=key) for key in ("mine-1", "mine-1", "mine-2"))
    assert one == again != other
    mine = ann.launch(ann.keep(), key="mine-1")
    assert mine not in (one, other), "others have keys of their own"
    for client, run in ((boss, one), (boss, other), (ann, mine)):
        client.wait(run, "finished")
    boss.api("PUT", f"/labs/{lab}", {"base": 1, "text": "no lab any more"})
    assert boss.launch(lab, key="mine-1") == one, "asked again, it answers as it did, whatever became of the lab"
    boss.api("POST", f"/labs/{lab}/runs", {"key": "mine-3"}, status=422)
