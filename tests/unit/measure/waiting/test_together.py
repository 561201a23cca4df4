"""For how long programs look at what they do beside others."""

from __future__ import annotations

from dilaton.measure.waiting.together import Life, Together, shortest

LINK, OTHER = frozenset({"a:eth0", "b:eth0"}), frozenset({"c:eth0"})


def life(process: str, begin_s: float, end_s: float, way: frozenset[str] = LINK) -> Life:
    """Of a program on node `a`."""
    return Life("a", process, begin_s, end_s, way)


def test_a_program_looks_from_the_begin_of_the_first_beside_it_to_its_own_end() -> None:
    assert shortest([life("flow", 0.5, 9), life("pings", 0.7, 1.1)]) == Together("a/pings", 1.1 - 0.5)
    assert shortest([life("flow", 0.5, 1.5), life("late", 1, 8)]) == Together("a/flow", 1.0)


def test_who_is_over_before_another_begins_is_not_beside_it() -> None:
    assert shortest([life("pings", 0, 0.5), life("flow", 0.5, 4)]) is None


def test_programs_without_a_link_in_common_do_not_notice_each_other() -> None:
    assert shortest([life("one", 0, 1), life("other", 0, 1, OTHER)]) is None
    assert shortest([life("one", 0, 1), life("other", 0, 2, OTHER | LINK)]) == Together("a/one", 1)
    assert shortest([life("quiet", 0, 1, frozenset()), life("other", 0, 1)]) is None


def test_one_alone_has_none_beside_it() -> None:
    assert shortest([life("flow", 0, 1)]) is None
    assert shortest([]) is None
