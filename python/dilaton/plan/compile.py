"""Compiles a lab to its plan."""

from __future__ import annotations

from dilaton.lab.model import Lab
from dilaton.lab.segments import without_lans
from dilaton.plan import guests, pace, schedule
from dilaton.plan.changes import directions_of, link_changes, tables_of, traces_of
from dilaton.plan.errors import lab_error
from dilaton.plan.measure import measurement
from dilaton.plan.model import Check, Plan, Process
from dilaton.plan.network import Network


def compile(lab: Lab) -> Plan:
    """Compiles a lab to its plan: a pure function of the lab.

    Raises:
        LabError: the lab has more parts than addresses can tell apart, or than its pools have room for, or a process
            is named like the daemon of a node.
    """
    network = Network(without_lans(lab))
    nodes = network.nodes()
    time = pace.time(lab.time, nodes)
    return Plan(
        lab=lab.name,
        seed=lab.seed,
        time=time,
        stop_after_ns=lab.stop_after_ns,
        grace_ns=schedule.GRACE_NS,
        guests=[guests.guest(network.lab, time.tdf, network.modules, network.states)],
        nodes=nodes,
        links=network.links(),
        wires=[],
        tables=tables_of(directions_of(lab)),
        traces=traces_of(directions_of(lab)),
        changes=link_changes(network.lab, network.states),
        hosts=network.hosts(),
        measure=measurement(lab.measure),
        processes=_processes(network.processes(), lab),
        checks=[Check(text=expectation.text) for expectation in lab.expect],
    )


def _processes(daemons: list[Process], lab: Lab) -> list[Process]:
    """Those that kinds of nodes bring with them, and those of the lab."""
    taken = {daemon.name: daemon.node for daemon in daemons}
    for number, process in enumerate(lab.run):
        if node := taken.get(process.name):
            raise lab_error(
                f"run[{number}].name", f"{process.name}: a daemon of {node} has this name; choose another one"
            )
    return [*daemons, *(schedule.process(process) for process in lab.run)]
