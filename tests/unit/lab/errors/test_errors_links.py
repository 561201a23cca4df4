"""Mistakes in impairments, queues, traces and changes of links: each gets its one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.lab import LabError, load, loads

HEAD = "name: x\nnodes: {a: {}, b: {}}\n"
"""The first two lines of every lab here."""

IMPAIRMENTS = [
    (
        "a distribution without a jitter",
        "delay: {mean: 1ms, distribution: normal}",
        "3:62: links[0].delay.distribution: normal: a distribution needs a jitter; write delay: {mean: …, jitter: 2ms}",
    ),
    (
        "a seed of a loss that cannot be repeated",
        "loss: {random: 1%, correlation: 25%, seed: 7}",
        "3:72: links[0].loss.seed: a seed is of a random loss without correlation, or of gemodel; "
        "others cannot be repeated",
    ),
    (
        "a correlation of no jitter",
        "delay: {mean: 1ms, correlation: 25%}",
        "3:61: links[0].delay.correlation: a correlation needs a jitter; write jitter: 2ms",
    ),
    (
        "a jitter beyond netem's range",
        "delay: {mean: 5s, jitter: 3s}",
        "3:55: links[0].delay.jitter: 3s: netem takes a jitter of at most 2.147483647s",
    ),
    (
        "an unknown distribution",
        "delay: {mean: 1ms, jitter: 1ms, distribution: gauss}",
        "3:75: links[0].delay.distribution: gauss: not a distribution; use uniform, normal, pareto, paretonormal or a table file",
    ),
    (
        "a table file that is not there",
        "delay: {mean: 1ms, jitter: 1ms, distribution: ./no.dist}",
        "3:75: links[0].delay.distribution: ./no.dist: cannot be read: No such file or directory (looked at no.dist)",
    ),
    (
        "a percentage above 100",
        "loss: {gemodel: {p: 101%}}",
        "3:49: links[0].loss.gemodel.p: 101%: p can be at most 100%",
    ),
    (
        "two models of loss",
        "loss: {random: 1%, every: 5}",
        "3:35: links[0].loss: needs exactly one of random, gemodel, state, every, packets, such as {random: 1%}",
    ),
    (
        "a correlation of a model that has none",
        "loss: {every: 5, correlation: 25%}",
        "3:35: links[0].loss: a correlation belongs to a random loss, not to every",
    ),
    (
        "a packet that is not there",
        "loss: {packets: [0]}",
        "3:46: links[0].loss.packets[0]: 0: the number of a packet must be from 1 to 2147483647",
    ),
    (
        "no packets at all",
        "loss: {packets: []}",
        "3:45: links[0].loss.packets: no packets: list their numbers, the first is 1, as in [17, 42]",
    ),
    (
        "reordering of what is not delayed",
        "reorder: 1%",
        "3:38: links[0].reorder: reordering sends packets at once while others are delayed; write delay: too",
    ),
    (
        "more on the wire than a guest can hold",
        "rate: 100Gbit, delay: 10s",
        "3:51: links[0].delay: 10s: at 100Gbit that is 125 GB on the wire, and a guest can hold 6.44 GB; "
        "at most 515.396ms would do",
    ),
    (
        "a word that netem does not know",
        'netem: "delay 1ms lose 1%"',
        "3:36: links[0].netem: lose: not a word of netem; did you mean loss?",
    ),
    (
        "netem's limit, which counts the wire",
        'netem: "limit 5 delay 1ms"',
        "3:36: links[0].netem: limit: limit counts packets on the wire too; write queue: {limit: …}, which counts those that wait",
    ),
    (
        "a netem text without a unit",
        'netem: "delay 10"',
        "3:36: links[0].netem.delay.mean: 10: a delay needs a unit: write 10ms (or ns, us, s, min, h)",
    ),
    (
        "overhead of a rate",
        'netem: "rate 1mbit 20 5"',
        "3:36: links[0].netem: rate: 20: overhead and cells cannot be written; frames have 14 bytes of header",
    ),
    (
        "a model of loss without its parameters",
        "loss: {gemodel: 1%}",
        "3:45: links[0].loss.gemodel: must be a mapping of fields, not '1%'; "
        "write for example gemodel: {p: 1%, r: 10%}",
    ),
]

QUEUES = [
    (
        "an unknown discipline",
        "rate: 1Mbit, queue: {discipline: cobalt}",
        "3:62: links[0].queue.discipline: cobalt: not a queue discipline; "
        "use fifo, red, codel, fq_codel, pie, cake, sfq, fq, tbf, htb",
    ),
    (
        "a misspelt discipline",
        "rate: 1Mbit, queue: {discipline: fq-codel}",
        "3:62: links[0].queue.discipline: fq-codel: not a queue discipline; did you mean fq_codel?",
    ),
    (
        "a discipline without a rate",
        "queue: {discipline: codel}",
        "3:49: links[0].queue.discipline: codel needs a rate, since without one no queue forms; write rate: too",
    ),
    (
        "a limit in bytes beyond the kernel's numbers",
        "rate: 1Mbit, queue: {limit: 8GB}",
        "3:57: links[0].queue.limit: 8 GB at 1Mbit, and a queue holds 4.294967295GB; write 4.294967295GB",
    ),
    (
        "a time for which more would wait",
        "rate: 100Gbit, queue: {limit: 1s}",
        "3:59: links[0].queue.limit: 12.5 GB at 100Gbit, and a queue holds 4.294967295GB; write 343.597383ms",
    ),
    (
        "a burst beyond the kernel's numbers",
        "rate: 1Mbit, queue: {discipline: tbf, burst: 10GB}",
        "3:74: links[0].queue.burst: a burst can be at most what the rate sends in 274s",
    ),
    (
        "a limit that sfq does not take",
        "rate: 1Mbit, queue: {discipline: sfq, limit: 20000}",
        "3:74: links[0].queue.limit: 20000: sfq takes a limit of 2 to 16256 packets, 127 of each flow",
    ),
    (
        "more flows than the kernel keeps apart",
        "rate: 1Mbit, queue: {discipline: fq_codel, flows: 65537}",
        "3:79: links[0].queue.flows: 65537: a number of flows must be from 1 to 65536",
    ),
    (
        "flows of one queue",
        "rate: 1Mbit, queue: {discipline: codel, flows: 16}",
        "3:76: links[0].queue.flows: codel knows no such thing; it is of fq_codel",
    ),
    (
        "marking by what only drops",
        "rate: 1Mbit, queue: {ecn: true}",
        "3:55: links[0].queue.ecn: fifo knows no such thing; it is of red, codel, fq_codel, pie, cake",
    ),
    (
        "thresholds the wrong way round",
        "rate: 1Mbit, queue: {discipline: red, min: 30KB, max: 10KB}",
        "3:72: links[0].queue.min: 30KB: must be more than 0 and less than max, 10KB",
    ),
    (
        "a time without a rate",
        "queue: {limit: 50ms}",
        "3:44: links[0].queue.limit: a limit in time needs a rate; write rate: too, or a limit in packets or bytes",
    ),
]

TRACES = [
    (
        "a trace and a rate",
        "rate: 1Mbit, trace: {schedule: [[0s, 1Mbit]]}",
        "3:49: links[0].trace: a trace is the rate; remove rate:",
    ),
    (
        "a schedule that does not begin",
        "trace: {schedule: [[1s, 1Mbit]]}",
        "3:47: links[0].trace.schedule: must begin with the rate at 0s, as in [[0s, 10Mbit], [5s, 2Mbit]]",
    ),
    (
        "a schedule that goes back",
        "trace: {schedule: [[0s, 1Mbit], [5s, 2Mbit], [5s, 3Mbit]]}",
        "3:47: links[0].trace.schedule: 5s comes after 5s: write the instants in ascending order",
    ),
    (
        "a trace that is neither",
        "trace: {}",
        "3:36: links[0].trace: needs exactly one of file and schedule, such as {file: lte.up}",
    ),
]

CHANGES = [
    (
        "a change of no link",
        "{at: 1s, link: a -- c, loss: 1%}",
        "4:26: changes[0].link: a -- c: no such link; known: a:eth0--b:eth0",
    ),
    (
        "a change of nothing",
        "{at: 1s, link: a -- b}",
        "4:11: changes[0]: changes nothing; write for example delay: 50ms",
    ),
    (
        "a change that contradicts what is there",
        "{at: 1s, link: a -- b, queue: {limit: 1bdp}}",
        "4:49: changes[0].queue.limit: a limit in bdp needs a rate; write rate: too, or a limit in packets or bytes",
    ),
    (
        "a change that is none of going down",
        "{at: 1s, link: a -- b, down: maybe}",
        "4:40: changes[0].down: maybe: must be true or false",
    ),
    (
        "a change to a trace",
        "{at: 1s, link: a -- b, trace: {schedule: [[0s, 1Mbit]]}}",
        "4:41: changes[0].trace: a trace is of the whole run; change the rate: instead",
    ),
]


@pytest.mark.parametrize(
    ("fields", "line"),
    [pytest.param(fields, line, id=mistake) for mistake, fields, line in (*IMPAIRMENTS, *QUEUES, *TRACES)],
)
def test_a_mistake_in_a_link_is_told_in_one_line(fields: str, line: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(f"{HEAD}links: [{{endpoints: a -- b, {fields}}}]\n", "lab.yaml")
    assert str(caught.value) == f"lab.yaml:{line}"


@pytest.mark.parametrize(
    ("change", "line"), [pytest.param(change, line, id=mistake) for mistake, change, line in CHANGES]
)
def test_a_mistake_in_a_change_is_told_in_one_line(change: str, line: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(f"{HEAD}links: [a -- b]\nchanges: [{change}]\n", "lab.yaml")
    assert str(caught.value) == f"lab.yaml:{line}"


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ("", "lte.up: an empty trace; each line is the millisecond of one 1500-byte opportunity"),
        ("3\n1\n", "lte.up:2: 1 comes after 3: a trace is sorted"),
        ("1\ntwo\n", "lte.up:2: two: not a whole number"),
        ("0\n", "lte.up: the last line is the trace's length in milliseconds, and must be more than 0"),
    ],
)
def test_a_trace_file_is_read_beside_the_lab_and_its_mistakes_are_told_with_the_labs_line(
    tmp_path: Path, trace: str, message: str
) -> None:
    (tmp_path / "lte.up").write_text(trace)
    lab = tmp_path / "lab.yaml"
    lab.write_text(f"{HEAD}links: [{{endpoints: a -- b, trace: {{file: lte.up}}}}]\n")
    with pytest.raises(LabError) as caught:
        load(lab)
    assert str(caught.value) == f"{lab}:3:43: links[0].trace.file: {message}"


def test_a_link_of_several_between_two_nodes_is_named_with_its_interfaces() -> None:
    two = f"{HEAD}links: [a -- b, a -- b]\nchanges: [{{at: 1s, link: LINK, loss: 1%}}]\n"
    with pytest.raises(LabError, match="several links: write one of a:eth0--b:eth0, a:eth1--b:eth1"):
        loads(two.replace("LINK", "b -- a"), "lab.yaml")
    assert loads(two.replace("LINK", "b:eth1 -- a:eth1"), "lab.yaml").changes
