"""`dilaton doctor`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dilaton.cli.errors import HOST_LACKS
from dilaton.host.here.doctor import calibration, own_counter, programs
from dilaton.host.here.doctor.doctor import Finding, diagnose
from dilaton.host.here.doctor.facts import Facts, gather
from dilaton.plan.forecast.foresight import programs_needed
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides

MARKS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "missing": "[red]missing[/]"}


def doctor() -> None:
    """Shows what this machine has and lacks, with the fix for each lack.

    Raises:
        typer.Exit: with status 3 when something that a run needs is missing.
    """
    findings = diagnose(machine())
    console = Console()
    console.print(table(findings))
    for finding in findings:
        if finding.fix:
            # A line of its own, unwrapped: made to be copied.
            console.print(f"{finding.name}: [bold]{escape(finding.fix)}[/]", soft_wrap=True, highlight=False)
    if any(finding.status == "missing" for finding in findings):
        raise typer.Exit(HOST_LACKS)
    console.print("This machine can run labs.", highlight=False)


def programs_of(path: Path) -> None:
    """Shows the programs that a lab runs, whether nodes find them, and what installs each.

    Raises:
        LabError: the lab has mistakes.
        typer.Exit: with status 3 when one is missing.
    """
    prepared = prepare(LabText.read(path), Overrides())
    found = programs_needed(prepared.lab, prepared.plan, programs.executes)
    rows = Table(box=None, pad_edge=False)
    for heading in ("program", "", "what installs it"):
        rows.add_column(heading, overflow="fold")
    for program, is_here in found.items():
        rows.add_row(escape(program), MARKS["ok" if is_here else "missing"], escape(programs.fix([program])))
    Console().print(rows)
    if not all(found.values()):
        raise typer.Exit(HOST_LACKS)


def machine() -> Facts:
    """This machine, with what is measured for the doctor alone."""
    return replace(gather(), own_counter=own_counter.measure())


def calibrate() -> None:
    """Measures how fast a core of this machine is, and keeps it for this user.

    Raises:
        HostLacksError: when it cannot be measured.
    """
    found = calibration.calibrate(gather().cpu_model)
    print(f"A core of this machine has {found.ghz:.2f} GHz-equivalents: {calibration.store(found)}")


def table(findings: list[Finding]) -> Table:
    """The findings, a row each."""
    rows = Table(box=None, pad_edge=False)
    for heading in ("", "", "what was found"):
        rows.add_column(heading, overflow="fold")
    for finding in findings:
        rows.add_row(finding.name, MARKS[finding.status], escape(finding.what))
    return rows
