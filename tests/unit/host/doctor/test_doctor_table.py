"""What `dilaton doctor` shows and how it ends."""

from __future__ import annotations

import pytest
import typer
from rich.console import Console

from dilaton.cli.machine import doctor
from dilaton.host.here.doctor.doctor import Finding

GOOD = Finding("jail", "ok", "can be made")
WARNING = Finding("iperf3", "warning", "not installed [at all]", "sudo apt-get install iperf3", "iperf3")
LACK = Finding("guest kernel", "missing", "linux.uml is not installed", "sudo apt-get install user-mode-linux")


def findings_are(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    """The machine is as these findings say."""
    monkeypatch.setattr(doctor, "machine", lambda: None)
    monkeypatch.setattr(doctor, "diagnose", lambda _: list(findings))


def test_a_lack_ends_with_status_3_and_shows_its_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    findings_are(monkeypatch, GOOD, LACK)
    with pytest.raises(typer.Exit) as caught:
        doctor.doctor()
    assert caught.value.exit_code == 3
    assert "guest kernel: sudo apt-get install user-mode-linux\n" in capsys.readouterr().out


def test_a_warning_still_lets_this_machine_run_labs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    findings_are(monkeypatch, GOOD, WARNING)
    doctor.doctor()
    assert "This machine can run labs." in capsys.readouterr().out


def test_brackets_in_a_finding_are_shown_as_they_are() -> None:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(doctor.table([WARNING]))
    assert "not installed [at all]" in capture.get()
