"""Mistakes in processes and expectations: each gets its one line, with the place, the fault and the fix."""

from __future__ import annotations

import pytest

from dilaton.lab import LabError, loads

HEAD = "name: x\nnodes: {a: {}, b: {}}\n"
"""The first two lines of most labs here."""

PROCESSES = [
    (
        "a process without a command",
        HEAD + "run: [{on: a}]\n",
        "lab.yaml:3:7: run[0].exec: missing; write for example exec: ping -c 3 b",
    ),
    (
        "an empty command",
        HEAD + "run: [{on: a, exec: []}]\n",
        "lab.yaml:3:21: run[0].exec: no program: write its name and arguments, such as ping -c 3 b",
    ),
    (
        "a command with an open quote",
        HEAD + 'run: [{on: a, exec: "echo \'hi"}]\n',
        "lab.yaml:3:21: run[0].exec: echo 'hi: a quote is not closed",
    ),
    (
        "a command for a shell",
        HEAD + "run: [{on: a, exec: ping b | tee x}]\n",
        "lab.yaml:3:21: run[0].exec: ping b | tee x: no shell reads this, so | would be an argument: use sh -c '…' or a list",
    ),
    (
        "a process on an unknown node",
        HEAD + "run: [{on: c, exec: ping b}]\n",
        "lab.yaml:3:12: run[0].on: unknown node c; known: a, b",
    ),
    (
        "two processes of one name",
        HEAD + "run: [{on: a, exec: ping b}, {on: b, exec: ping a}]\n",
        "lab.yaml:3:30: run[1].name: ping is already the name of run[0]; give this one its own with name:",
    ),
    (
        "a process name that is a path",
        HEAD + "run: [{on: a, exec: ping b, name: ../x}]\n",
        "lab.yaml:3:35: run[0].name: '../x': a process name has 1 to 64 letters, digits, dots, dashes and underscores, and does not begin with a dot or dash",
    ),
    (
        "a process that waits for an unknown one",
        HEAD + "run: [{on: a, exec: ping b, after: server}]\n",
        "lab.yaml:3:36: run[0].after: unknown process or fault server; known: ping",
    ),
    (
        "a process that waits for a misspelt one",
        HEAD + "run: [{on: a, exec: ping b, after: srever}, {on: b, name: server, exec: iperf3 -s}]\n",
        "lab.yaml:3:36: run[0].after: unknown process or fault srever; did you mean server?",
    ),
    (
        "a wait for routes that nobody looks for",
        HEAD + "run: [{on: a, exec: ping b, after: converged}]\n",
        "lab.yaml:3:36: run[0].after: converged: no router here has a routing daemon, so all routes are there from the start; leave it out",
    ),
    (
        "a metric that waiting for routes has not",
        HEAD + "links: [a -- b]\nrouting: bgp\nrun: [{on: a, exec: ping b}]\nexpect: [converged.loss == 0%]\n",
        "lab.yaml:6:10: expect[0]: converged.loss == 0%: converged has start, end and exit alone",
    ),
    (
        "a process that waits for itself",
        HEAD + "run: [{on: a, exec: ping b, after: ping}]\n",
        "lab.yaml:3:36: run[0].after: ping cannot wait for itself",
    ),
    (
        "processes that wait for each other",
        HEAD
        + "run: [{on: a, name: p, exec: ping b, after: q}, {on: a, name: q, exec: ping b, after: r}, {on: a, name: r, exec: ping b, after: [p]}]\n",
        "lab.yaml:3:45: run[0].after: a cycle: p after q after r after p; none could start",
    ),
    (
        "a start without a unit",
        HEAD + "run: [{on: a, exec: ping b, start: 2}]\n",
        "lab.yaml:3:36: run[0].start: 2: a start needs a unit: write 2ms (or ns, us, s, min, h)",
    ),
    (
        "a stop before the start",
        HEAD + "run: [{on: a, exec: ping b, start: 2s, stop: 1s}]\n",
        "lab.yaml:3:46: run[0].stop: 1s: must be later than the start, 2s",
    ),
    (
        "a start after the end of the run",
        HEAD + "stop_after: 1s\nrun: [{on: a, exec: ping b, start: 1s}]\n",
        "lab.yaml:4:36: run[0].start: 1s: never comes, since stop_after ends the run at 1s",
    ),
    (
        "a TCP port out of range",
        HEAD + "run: [{on: a, exec: ping b, ready: {tcp: 65536}}]\n",
        "lab.yaml:3:42: run[0].ready.tcp: 65536: a TCP port must be from 1 to 65535",
    ),
    (
        "two conditions of readiness",
        HEAD + "run: [{on: a, exec: ping b, ready: {tcp: 1, delay: 1s}}]\n",
        "lab.yaml:3:36: run[0].ready: needs exactly one of tcp, output and delay, such as {tcp: 5201}",
    ),
    (
        "a readiness that comes after its timeout",
        HEAD + "run: [{on: a, exec: ping b, ready: {delay: 31s}}]\n",
        "lab.yaml:3:44: run[0].ready.delay: 31s: never comes before the timeout, 30s",
    ),
    (
        "a broken regular expression",
        HEAD + "run: [{on: a, exec: ping b, ready: {output: '('}}]\n",
        "lab.yaml:3:45: run[0].ready.output: (: not a regular expression: missing ), unterminated subpattern at position 0",
    ),
    (
        "a regular expression that looks ahead",
        HEAD + "run: [{on: a, exec: ping b, ready: {output: 'a(?=b)'}}]\n",
        "lab.yaml:3:45: run[0].ready.output: a(?=b): the agent's regular expressions, which never backtrack, have no (?=",
    ),
    (
        "a regular expression that refers back",
        HEAD + "run: [{on: a, exec: ping b, ready: {output: '(a)\\1'}}]\n",
        "lab.yaml:3:45: run[0].ready.output: (a)\\1: the agent's regular expressions, which never backtrack, have no \\1",
    ),
    (
        "an exit status beyond a byte",
        HEAD + "run: [{on: a, exec: ping b, expect_exit: 256}]\n",
        "lab.yaml:3:42: run[0].expect_exit: 256: an exit status is a number from 0 to 255, or any",
    ),
    (
        "a relative working directory",
        HEAD + "run: [{on: a, exec: ping b, cwd: tmp}]\n",
        "lab.yaml:3:34: run[0].cwd: tmp: must be an absolute path in the node, such as /tmp/tmp",
    ),
    (
        "a variable name with a dash",
        HEAD + "run: [{on: a, exec: ping b, env: {MY-VAR: 1}}]\n",
        "lab.yaml:3:35: run[0].env.MY-VAR: 'MY-VAR': a variable name has letters, digits and underscores, and no digit first",
    ),
]

EXPECTATIONS = [
    (
        "an expectation without an operator",
        HEAD + "run: [{on: a, exec: ping b}]\nexpect: [ping.loss]\n",
        "lab.yaml:4:10: expect[0]: ping.loss: not an expectation; write PROCESS.METRIC OPERATOR VALUE, such as bulk.throughput > 9Gbit or ping.rtt.avg within 1% of 40ms",
    ),
    (
        "an expectation with a single equals sign",
        HEAD + "run: [{on: a, exec: ping b}]\nexpect: [ping.loss = 0%]\n",
        "lab.yaml:4:10: expect[0]: ping.loss = 0%: = is not an operator; write ==",
    ),
    (
        "an expectation on an unknown process",
        HEAD + "run: [{on: a, exec: ping b}]\nexpect: [pong.loss == 0%]\n",
        "lab.yaml:4:10: expect[0]: pong.loss == 0%: unknown process pong; did you mean ping?",
    ),
    (
        "an expectation on an unknown metric",
        HEAD + "run: [{on: a, exec: ping b}]\nexpect: [ping.rtt.average < 40ms]\n",
        "lab.yaml:4:10: expect[0]: ping.rtt.average < 40ms: rtt.average is not a metric; known are exit, start, end, throughput, sent_throughput, retransmits, fairness, sent, received, loss, rtt.min, rtt.avg, rtt.max, rtt.mdev, rtt.p50, rtt.p95, rtt.p99, outage, requests, errors, requests_per_s, iops, latency.min, latency.avg, latency.max, latency.p50, latency.p99; did you mean rtt.avg?",
    ),
    (
        "an expectation without a metric",
        HEAD + "run: [{on: a, exec: ping b}]\nexpect: [ping > 3]\n",
        "lab.yaml:4:10: expect[0]: ping: no metric; write PROCESS.METRIC OPERATOR VALUE, such as bulk.throughput > 9Gbit or ping.rtt.avg within 1% of 40ms",
    ),
    (
        "an expectation in the wrong unit",
        HEAD + "run: [{on: a, exec: ping b}]\nexpect: [ping.rtt.avg < 9Gbit]\n",
        "lab.yaml:4:10: expect[0]: 9Gbit: Gbit is not a unit of rtt.avg: use ns, us, ms, s, min, h",
    ),
    (
        "an expectation without a unit",
        HEAD + "run: [{on: a, exec: ping b}]\nexpect: [ping.rtt.avg within 1% of 40]\n",
        "lab.yaml:4:10: expect[0]: 40: rtt.avg needs a unit: write 40ms (or ns, us, s, min, h)",
    ),
    (
        "a throughput of ping",
        HEAD + "run: [{on: a, exec: ping b}]\nexpect: [ping.throughput > 9Gbit]\n",
        "lab.yaml:4:10: expect[0]: ping.throughput > 9Gbit: ping runs ping, which has no throughput; ITGDec or curl or fio or iperf3 or wrk has",
    ),
    (
        "a throughput of iperf3 without JSON",
        HEAD + "run: [{on: a, name: bulk, exec: iperf3 -c b}]\nexpect: [bulk.throughput > 9Gbit]\n",
        "lab.yaml:4:10: expect[0]: bulk.throughput > 9Gbit: bulk has no result, since iperf3 gives one only with -J; add it to exec",
    ),
]


@pytest.mark.parametrize(
    ("text", "line"),
    [pytest.param(text, line, id=mistake) for mistake, text, line in (*PROCESSES, *EXPECTATIONS)],
)
def test_a_mistake_is_told_in_one_line(text: str, line: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(text, "lab.yaml")
    assert str(caught.value) == line
