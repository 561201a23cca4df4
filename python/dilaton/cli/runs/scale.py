"""`dilaton scale`: a lab of many machines on few guests, with what it will cost, and a lab file ready to run."""

from __future__ import annotations

import asyncio
import sys

from rich.markup import escape
from rich.table import Table

from dilaton.cli.terminal import Output
from dilaton.lab.text import units
from dilaton.measure import numbers
from dilaton.plan.scale import Proposal, nodes_per_guest_max
from dilaton.run import here
from dilaton.service.studies.scale import Pilot, Scaled, ScaleRequest, run_pilot, scale


def scale_lab(request: ScaleRequest) -> int:
    """Scales a lab down and shows what that means; returns the exit status.

    Raises:
        LabError, RequestError, HostLacksError: as of `scale` and `run_pilot`.
    """
    scaled, pilot = scale(request), None
    if scaled.pilot_ns:
        print(f"pilot: the first {units.format_duration(scaled.pilot_ns)} …", file=sys.stderr)
        pilot = asyncio.run(run_pilot(scaled))
    show(scaled, request.onto, pilot)
    print(f"ready to run: {scaled.target}")
    return 0


def show(scaled: Scaled, onto: int, pilot: Pilot | None) -> None:
    """Prints the proposal."""
    lab, proposal = scaled.lab, scaled.proposal
    rows = Table(box=None, pad_edge=False, show_header=False)
    rows.add_column(overflow="fold")
    rows.add_column(overflow="fold")
    count, cores = len(proposal.cpus), here.for_plans().cores
    most, bound = nodes_per_guest_max(lab)
    rows.add_row(
        "machines", f"{count} onto {numbers.counted(onto, 'guest')}: at most {proposal.machines_per_guest_max} in one"
    )
    rows.add_row("a guest can hold", f"{most}: {bound}")
    rows.add_row("TDF", f"{proposal.tdf}: the CPUs of the fullest guest, and a quarter for what is charged to nobody")
    shares = sorted({float(cpu / proposal.tdf) for cpu in proposal.cpus.values()})
    rows.add_row("CPU shares", ", ".join(f"{share:.1%}" for share in shares) + " of a guest each")
    memory = [part.memory_bytes / 1e9 for part in proposal.parts]
    said = f"{sum(memory):.3g} GB in sum, {max(memory):.3g} GB in one guest, where machines say it"
    rows.add_row("memory", said if sum(memory) else "no machine says what it needs")
    rows.add_row("host time", _host_time(proposal, scaled.duration_ns, pilot, cores))
    for loss in proposal.losses:
        rows.add_row("not scaled", escape(loss))
    Output().print(rows)


def _host_time(proposal: Proposal, duration_ns: int | None, pilot: Pilot | None, cores: int) -> str:
    if duration_ns is None:
        each = proposal.host_s_max(1, cores)
        measured = "" if pilot is None else f"{pilot.pace:.3g} s for a virtual second, as the pilot went; "
        return f"{measured}at most {each:.3g} s for a virtual second; --duration 60s says how long it is"
    virtual_s = duration_ns / 1e9
    bound = f"at most {proposal.host_s_max(virtual_s, cores):.3g} s, if all CPUs are always busy"
    if pilot is None:
        return f"{bound}; --pilot 1s measures what can be expected"
    return f"{pilot.host_s_of(virtual_s):.3g} s for {virtual_s:g} virtual s, as the pilot went; {bound}"
