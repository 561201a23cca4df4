"""The latest samples of a table that is still being written."""

from __future__ import annotations

import pytest

from dilaton.measure.layouts import NODES
from dilaton.measure.recent import latest

HEADER = "t_ns,node,cpu_ns,memory_bytes,processes,io_read_bytes,io_write_bytes"


def test_each_key_has_its_last_sample_with_rates_since_the_one_before() -> None:
    tail = "0,b,1,1,1,0,0\n1000000000,a,100,5,2,0,0\n1000000000,b,0,7,1,0,\n2000000000,a,250000100,6,2,10,0\n20000,a,3"
    a, b = latest(NODES, HEADER, "cut off " + tail)
    assert (a["node"], a["t_s"], a["memory_bytes"], a["cpu_share"]) == ("a", 2.0, 6, 0.25)
    assert a["io_read_byte_per_s"] == 10
    assert (b["node"], b["cpu_share"], b["io_write_bytes"]) == ("b", None, None)


def test_a_table_of_which_nothing_is_written_yet_has_none() -> None:
    assert latest(NODES, "", "") == []
    assert latest(NODES, HEADER, f"{HEADER}\n") == []


def test_a_node_whose_name_is_a_number_has_it_as_text() -> None:
    rows = latest(NODES, HEADER, "\n0,1,1,1,1,0,0\n0,a,1,1,1,0,0\n")
    assert [row["node"] for row in rows] == ["1", "a"]


@pytest.mark.parametrize(
    "row",
    [
        ",a,1,1,1,0,0",
        "soon,a,1,1,1,0,0",
        f"{'9' * 5000},a,1,1,1,0,0",
        "5,,1,1,1,0,0",
        "5,\x1b[2J,1,1,1,0,0",
        f"5,{'a' * 200_000},1,1,1,0,0",
    ],
)
def test_what_is_no_sample_is_passed_over(row: str) -> None:
    (found,) = latest(NODES, HEADER, f"\n1,a,1,{'9' * 400},1,0,0\n{row}\n")
    assert (found["t_ns"], found["memory_bytes"]) == (1, None)


def test_columns_that_a_table_lacks_are_missing_values() -> None:
    (found,) = latest(NODES, "t_ns,node,cpu_ns", "\n1,a,5\n")
    assert (found["cpu_ns"], found["processes"]) == (5, None)
    assert latest(NODES, "t_ns,cpu_ns", "\n1,5\n") == latest(NODES, "node,cpu_ns", "\na,5\n") == []
