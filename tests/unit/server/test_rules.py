"""Who may do what is decided from grants and scopes alone; and no run goes from one state to another that cannot follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.server.access.rules import PERMISSIONS, ROLES, Access, Grant, unknown_patterns
from dilaton.server.runs.life import FINAL, NEXT, LifeError, RunState, follows

RUN = "/home/ann/runs/1"


def test_nothing_is_allowed_that_no_grant_allows() -> None:
    assert not any(Access().may(permission, "/") for permission in PERMISSIONS)
    assert not any(Access((Grant("/", "no-such-role"),)).may(permission, "/") for permission in PERMISSIONS)


@pytest.mark.parametrize(
    ("grants", "path", "allowed"),
    [
        ([Grant("/home/ann", "user")], RUN, True),
        ([Grant("/home/ann", "user")], "/home/anna/runs/1", False),
        ([Grant("/home/ann", "user")], "/home", False),
        ([Grant("/home/ann", "user", propagates=False)], RUN, False),
        ([Grant("/home/ann", "user", propagates=False)], "/home/ann", True),
        ([Grant("/", "administrator")], RUN, True),
        # The deepest grant counts, whatever the others say.
        ([Grant("/", "administrator"), Grant("/home/ann", "user", denies=True)], RUN, False),
        ([Grant("/home", "user", denies=True), Grant("/home/ann", "user")], RUN, True),
        # At one depth a denial does.
        ([Grant("/home/ann", "user"), Grant("/home/ann", "operator", denies=True)], RUN, False),
        # A grant that does not name the permission says nothing about it.
        ([Grant("/home/ann", "user"), Grant(RUN, "reader", denies=True)], RUN, True),
        ([Grant("/home/ann", "reader")], RUN, False),
    ],
)
def test_the_deepest_grant_counts_and_a_denial_before_a_permission(
    grants: list[Grant], path: str, allowed: bool
) -> None:
    for order in (grants, grants[::-1]):
        assert Access(tuple(order)).may("Run.Steer", path) is allowed


GRANTS = st.builds(
    Grant,
    st.sampled_from(["/", "/home", "/home/ann", RUN]),
    st.sampled_from(sorted(ROLES)),
    denies=st.booleans(),
    propagates=st.booleans(),
)


@given(st.lists(GRANTS, max_size=5), st.sampled_from(sorted(PERMISSIONS)), st.sampled_from(["*", "Run.*", "Lab.Read"]))
def test_scopes_only_narrow_and_a_further_denial_allows_nothing_more(
    grants: list[Grant], permission: str, scope: str
) -> None:
    alone = Access(tuple(grants)).may(permission, RUN)
    assert alone or not Access(tuple(grants), scopes=(scope,)).may(permission, RUN)
    assert not Access(tuple(grants), scopes=()).may(permission, RUN)
    denied = (*grants, Grant(RUN, "administrator", denies=True))
    assert not Access(denied).may(permission, RUN)


@given(st.lists(GRANTS, max_size=5), st.sampled_from(sorted(PERMISSIONS)))
def test_folders_are_looked_into_wherever_something_inside_may_be_seen(grants: list[Grant], permission: str) -> None:
    access = Access(tuple(grants))
    if access.may(permission, RUN):
        assert "/home/ann" in access.inside(["/home/ann", "/courses/net1"])
        assert permission in access.somewhere()


def test_nothing_is_offered_that_no_grant_names_or_a_scope_keeps_away() -> None:
    teacher = Grant("/courses/net1", "teacher")
    assert "Request.Approve" in Access((teacher,)).somewhere() and "Audit.Read" not in Access((teacher,)).somewhere()
    assert Access((teacher,), scopes=("Run.Read",)).somewhere() == ["Run.Read"]
    assert Access((Grant("/", "teacher", denies=True),)).somewhere() == []


def test_every_pattern_of_a_role_names_a_permission() -> None:
    assert not [pattern for patterns in ROLES.values() for pattern in unknown_patterns(patterns)]
    assert unknown_patterns(["Run.*", "Run.Fly"]) == ["Run.Fly"]


def test_a_run_that_is_over_stays_as_it_is_and_every_other_can_end() -> None:
    for state, following in NEXT.items():
        assert bool(following) == (state not in FINAL)
        reached: set[RunState] = {state}
        for _ in NEXT:
            reached |= {after for before in reached for after in NEXT[before]}
        assert reached & FINAL
    assert not follows("running", "running")
    with pytest.raises(LifeError, match="a run that is finished does not become running"):
        follows("finished", "running")
