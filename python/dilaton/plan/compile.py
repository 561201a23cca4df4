"""Compiles a lab to its plan."""

from __future__ import annotations

from dilaton.lab.model import Lab
from dilaton.lab.segments import without_lans
from dilaton.plan import guests, schedule
from dilaton.plan.changes import link_changes, tables_of, traces_of
from dilaton.plan.measure import measurement
from dilaton.plan.model import Check, Plan, Speed, Tdf, Time
from dilaton.plan.network import Network


def compile(lab: Lab) -> Plan:
    """Compiles a lab to its plan: a pure function of the lab.

    Raises:
        LabError: the lab has more parts than addresses can tell apart, or than its pools have room for.
    """
    network = Network(without_lans(lab))
    return Plan(
        lab=lab.name,
        seed=lab.seed,
        time=Time(
            drive=lab.time.drive,
            tdf=Tdf(numerator=lab.time.tdf.numerator, denominator=lab.time.tdf.denominator),
            max_speed=None if (speed := lab.time.max_speed) is None else Speed.of(speed),
        ),
        stop_after_ns=lab.stop_after_ns,
        grace_ns=schedule.GRACE_NS,
        guests=[guests.guest(network.lab, network.modules, network.states)],
        nodes=network.nodes(),
        links=network.links(),
        tables=tables_of(lab),
        traces=traces_of(lab),
        changes=link_changes(network.lab, network.states),
        hosts=network.hosts(),
        measure=measurement(lab.measure),
        processes=[*network.processes(), *(schedule.process(process) for process in lab.run)],
        checks=[Check(text=expectation.text) for expectation in lab.expect],
    )
