"""Calibration measures a fixed computation, and what it measured holds for the CPU that it measured."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from dilaton.host.errors import HostLacksError
from dilaton.host.here.doctor import calibration
from dilaton.host.here.doctor.calibration import PARTS, Calibration, fixed_text, seconds, store, stored


def test_the_computation_is_the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    text = fixed_text()
    assert (len(text), zlib.crc32(text)) == (2676385, 600837186)
    monkeypatch.setattr(calibration, "RUNS", 1)
    assert all(seconds(part, text) > 0 for part in PARTS)


def test_a_library_that_does_other_work_is_refused() -> None:
    other = replace(PARTS[0], work=lambda text: text[:10])
    with pytest.raises(HostLacksError, match="the zlib of this Python is another: it makes 4 bytes, not 1078714"):
        seconds(other, b"text")


def test_what_was_measured_is_kept_for_this_cpu_and_this_computation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert stored("fast") is None
    assert store(Calibration(3.5, "fast")) == tmp_path / "dilaton/core.json"
    assert stored("fast") == Calibration(3.5, "fast")
    assert stored("slow") is None
    store(Calibration(3.5, "fast", version=0))
    assert stored("fast") is None
    (tmp_path / "dilaton/core.json").write_text("[")
    assert stored("fast") is None
