"""Runs of a server with kernels, each spread over two machines that are made of the server's own."""

from __future__ import annotations

from pathlib import Path

from tests.unit.server.serving import served

LAB = """\
name: apart
time: {drive: event}
guests: 3
nodes: {a: {}, b: {}, c: {}}
links:
  - {endpoints: [a, b], delay: 20ms}
  - {endpoints: [b, c], delay: 20ms}
placement: {a: 1, b: 0, c: 1}
run: [{on: a, name: ping, exec: ping -c 2 -i 0.1 c}]
expect: [ping.loss == 0%]
"""


def test_the_record_and_the_drawing_tell_which_node_is_on_which_machine(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        me = server.client()
        run = me.launch(me.keep(LAB), machines=2)
        shown = me.wait(run, "finished", "failed", "aborted")
        record = me.api("GET", f"/runs/{run}/record")
        assert (shown["state"], record["checks"][0]["passed"]) == ("finished", True), record
        guests = {node["name"]: node["guest"] for node in me.api("GET", f"/runs/{run}/drawing")["nodes"]}
        machines = {guest["name"]: guest["machine"] for guest in record["guests"]}
        assert {node: machines[guests[node]] for node in "abc"} == {"a": "machine1", "b": "machine0", "c": "machine1"}
        assert record["lost_machine"] is None


def test_each_run_of_a_sweep_is_spread_over_machines(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        me = server.client()
        asked = {"machines": 2, "fields": [{"path": "links.0.delay", "values": ["10ms", "20ms"]}]}
        made = me.api("POST", f"/labs/{me.keep(LAB)}/sweeps", asked)
        for run, rtt_s in zip(made["runs"], (0.06, 0.08), strict=True):
            shown = me.wait(run["run"], "finished", "failed", "aborted")
            record = me.api("GET", f"/runs/{run['run']}/record")
            assert (shown["state"], record["checks"][0]["passed"]) == ("finished", True), record
            assert {guest["machine"] for guest in record["guests"]} == {"machine0", "machine1"}
            assert record["processes"][0]["result"]["rtt"]["min"] == rtt_s
