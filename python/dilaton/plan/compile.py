"""Compiles a lab to its plan."""

from __future__ import annotations

from dilaton.lab.checks.course import awaits_converged, names
from dilaton.lab.model import Lab
from dilaton.lab.model import Process as LabProcess
from dilaton.lab.segments import without_lans
from dilaton.plan import schedule
from dilaton.plan.common import GRACE_NS
from dilaton.plan.course.faults import faults
from dilaton.plan.errors import lab_error
from dilaton.plan.guests import kernels as guests
from dilaton.plan.guests import pace
from dilaton.plan.guests.devices import check_counts
from dilaton.plan.guests.memory import check_memory
from dilaton.plan.kinds import converged
from dilaton.plan.links.changes import directions_of, link_changes, tables_of, traces_of
from dilaton.plan.machine import Machine
from dilaton.plan.measure import measurement
from dilaton.plan.model import Check, OwnMetric, Plan, Process
from dilaton.plan.network.bounds import on_drive, used
from dilaton.plan.network.network import Network
from dilaton.plan.users import check_users

ANY = Machine()
"""A machine of which only the least is known."""


def compile(lab: Lab, machine: Machine = ANY) -> Plan:
    """Compiles a lab to its plan: a pure function of the lab and of what it needs of the machine.

    Args:
        lab: What to compile.
        machine: Where it will run.

    Raises:
        LabError: the lab has more parts than addresses can tell apart, or than its pools have room for; a process is
            named like the daemon of a node; its guests cannot be apart as it says, or have too many links; there is
            too little memory; or a program would run as a user who is not there.
    """
    network = Network(without_lans(lab), machine.cores)
    check_memory(network.lab, network.placement, machine.memory_bytes)
    check_users(lab, machine.users)
    wires = network.wires()
    check_counts(wires)
    nodes = network.nodes()
    changes = link_changes(network.lab, network.states)
    broken = faults(
        network.lab,
        network.states,
        network.placement.of_node,
        {node.name: node for node in nodes},
        names(lab),
    )
    links, hosts, daemons, waiting = network.links(), network.hosts(), network.processes(), list[Process]()
    if awaits_converged(lab):
        nodes, waiting = converged.waiting({daemon.node for daemon in daemons} & set(network.routers), nodes)
    processes = _processes(daemons, waiting, lab)
    lateness_ns = lab.fidelity.lateness_ns
    course = [*changes, *broken]
    network_used = used(nodes, links, course, processes, hosts, tolerance_ns=lateness_ns)
    network_used = on_drive(network_used, lab.time.drive)
    time = pace.time(lab.time, network_used, lateness_ns)
    directions = list(directions_of(lab))
    return Plan(
        lab=lab.name,
        seed=lab.seed,
        time=time,
        stop_after_ns=lab.stop_after_ns,
        grace_ns=GRACE_NS,
        guests=guests.guests(network),
        nodes=nodes,
        links=links,
        wires=wires,
        tables=tables_of(directions),
        traces=traces_of(directions),
        course=course,
        hosts=hosts,
        measure=measurement(lab.measure),
        processes=processes,
        results={process.name: _own(process) for process in lab.run if process.results},
        checks=[Check(text=expectation.text) for expectation in lab.expect],
    )


def _own(process: LabProcess) -> dict[str, OwnMetric]:
    return {name: OwnMetric(**metric.model_dump()) for name, metric in process.results.items()}


def _processes(daemons: list[Process], waiting: list[Process], lab: Lab) -> list[Process]:
    """Those that kinds of nodes bring with them, those of the lab, and those that wait for routes."""
    taken = {other.name: other.node for other in (*daemons, *waiting)}
    for number, process in enumerate(lab.run):
        if node := taken.get(process.name):
            raise lab_error(
                f"run[{number}].name", f"{process.name}: a daemon of {node} has this name; choose another one"
            )
    images = {name: node.image for name, node in lab.nodes.items() if node.image != "host"}
    known = names(lab)
    return [
        *daemons,
        *(schedule.process(process, known, lab.files, images.get(process.on)) for process in lab.run),
        *waiting,
    ]
