"""The verdict is right: a chain of links that the machine cannot carry in real time is not valid, dilated it is."""

from __future__ import annotations

import pytest

from tests.conftest import RunLab
from tests.overloaded import chain


@pytest.mark.parametrize("drive", ["wall", "work"])
def test_a_chain_over_capacity_at_tdf_1_is_not_valid(run_lab: RunLab, drive: str) -> None:
    outcome = run_lab(chain("60M" if drive == "wall" else "20M"), "--drive", drive, "--tdf", "1")
    verdict = outcome.record["verdict"]
    assert verdict["level"] != "valid"
    # 18 us against 2.4 us, and no quieter host makes up for a factor of seven.
    assert any("a full frame takes 2.42 us" in reason["what"] for reason in verdict["reasons"])
    assert verdict["level"] in outcome.terminal


def test_the_same_chain_with_enough_dilation_is_valid(run_lab: RunLab) -> None:
    # A frame then takes 605 us of the host's time, and a packet is handled in some 50: a host may be five times as slow.
    outcome = run_lab(chain("5M"), "--drive", "work", "--tdf", "250")
    assert outcome.status == 0
    assert outcome.record["verdict"] == {"level": "valid", "reasons": []}


def test_the_same_chain_with_enough_dilation_is_in_time_on_the_wall_drive(run_lab: RunLab) -> None:
    """A host that does much else leaves the guest without its core now and then, and the verdict speaks of that alone."""
    outcome = run_lab(chain("2M"), "--drive", "wall", "--tdf", "100")
    assert outcome.status == 0
    assert all("use the work drive" in reason["advice"] for reason in outcome.record["verdict"]["reasons"])
    # In CPU time, which other load takes nothing of: a tenth, where TDF 1 takes all that there is.
    assert outcome.record["fidelity"]["busy"] < 0.6


def test_seconds_in_which_the_cpu_was_too_slow_spoil_a_run_that_idles_else(run_lab: RunLab) -> None:
    spin = "timeout 2.5 sh -c 'while :; do :; done'"
    head = "name: x\nnodes: {a: }\nrun:\n"
    lab = f'{head}  - {{on: a, exec: "{spin}", expect_exit: 124}}\n  - {{on: a, exec: sleep 6}}\n'
    record = run_lab(lab, "--tdf", "1").record
    assert record["fidelity"]["busy"] < 0.9 < record["fidelity"]["busiest_second"]
    # A stall of the host's may be told beside it.
    (reason,) = (reason for reason in record["verdict"]["reasons"] if "of its busiest second" in reason["what"])
    assert (record["verdict"]["level"], reason["bound"]) == ("suspect", 0.9)
