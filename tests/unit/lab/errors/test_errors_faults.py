"""Mistakes in faults: each gets its one line, with the place, the fault and the fix."""

from __future__ import annotations

import pytest

from dilaton.lab import LabError, loads
from dilaton.plan.compile import compile as planned

HEAD = "name: x\nnodes: {a: {}, b: {}}\nlinks: [{endpoints: [a, b], rate: 10Mbit}]\nrun: [{on: a, name: p, exec: sleep 9}, {on: b, exec: ping a}]\n"
"""The first four lines of most labs here."""

MISTAKES = [
    ("{at: 1s}", "5:10: faults[0]: needs what it does, one of pause, kill, link, flap, partition, disk, clock, cpu, memory, load, crash, stop, reboot, start, random, as in pause: db1"),
    ("{at: 1s, disk: {node: a, errors: 5%}}", "5:32: faults[0].disk.node: a has no disk, but memory; give it one, as in a: {disk: ssd-sata}"),
    ("{at: 1s, disk: {node: c, errors: 5%}}", "5:32: faults[0].disk.node: unknown node c; known: a, b"),
    ("{at: 1s, disk: {node: 'c*', errors: 5%}}", "5:32: faults[0].disk.node: c*: meets no node"),
    ("{at: 1s, disk: {node: a}}", "5:25: faults[0].disk: says not what is wrong with it; write one or more of errors, corrupt, delay, stall, read_only, full"),
    ("{at: 1s, disk: {node: a, full: true, read_only: true}}", "5:25: faults[0].disk: read_only and full: a write fails for one reason; leave one of them out"),
    ("{at: 1s, disk: {node: a, errors: 5}}", "5:43: faults[0].disk.errors: 5: a share of errors needs a percent sign: write 5%"),
    ("{at: 1s, disk: a}", "5:25: faults[0].disk: must be a mapping of fields, not 'a'; write for example disk: {node: db1, errors: 5%}"),
    ("{at: 1s, clock: {node: c, jump: 2s}}", "5:33: faults[0].clock.node: unknown node c; known: a, b"),
    ("{at: 1s, clock: {node: a}}", "5:26: faults[0].clock: needs one of jump: +2s, by how much the date is later, back: 2s, earlier, or drift: 500ppm, too fast"),
    ("{at: 1s, clock: {node: a, jump: 2s, back: 2s}}", "5:26: faults[0].clock: needs one of jump: +2s, by how much the date is later, back: 2s, earlier, or drift: 500ppm, too fast"),
    ("{at: 1s, clock: {node: a, jump: 2}}", "5:42: faults[0].clock.jump: 2: a jump needs a unit: write 2ms (or ns, us, s, min, h)"),
    ("{at: 1s, clock: {node: a, jump: 0s}}", "5:42: faults[0].clock.jump: 0s: a jump is of more or less than 0"),
    ("{at: 1s, clock: {node: a, jump: +438001h}}", "5:42: faults[0].clock.jump: +438001h: a jump can be of at most 50 years, 438000h"),
    ("{at: 1s, clock: {node: a, back: 438001h}}", "5:42: faults[0].clock.back: 438001h: a jump can be of at most 50 years, 438000h"),
    ("{at: 1s, clock: {node: a, back: -2s}}", "5:26: faults[0].clock: back: is earlier already; write it without the sign"),
    ("{at: 1s, clock: {node: a, jump: 2s, drift: 5ppm}}", "5:26: faults[0].clock: needs one of jump: +2s, by how much the date is later, back: 2s, earlier, or drift: 500ppm, too fast"),
    ("{at: 1s, clock: {node: a, drift: 5%}}", "5:43: faults[0].clock.drift: 5%: a drift is in parts per million, as in 500ppm or -20ppm"),
    ("{at: 1s, clock: {node: a, drift: 5}}", "5:43: faults[0].clock.drift: 5: a drift is in parts per million, as in 500ppm or -20ppm"),
    ("{at: 1s, clock: {node: a, drift: 0ppm}}", "5:43: faults[0].clock.drift: 0ppm: a drift is a multiple of 0.1ppm, and not 0"),
    ("{at: 1s, clock: {node: a, drift: 0.05ppm}}", "5:43: faults[0].clock.drift: 0.05ppm: a drift is a multiple of 0.1ppm, and not 0"),
    ("{at: 1s, clock: {node: a, drift: -100001ppm}}", "5:43: faults[0].clock.drift: -100001ppm: a drift can be at most 100000ppm"),
    ("{at: 1s, cpu: {node: c, to: 0.1}}", "5:31: faults[0].cpu.node: unknown node c; known: a, b"),
    ("{at: 1s, cpu: {node: a, to: 0.1}}", "5:31: faults[0].cpu.node: a has no CPU whose speed is known; give it one, as in a: {cpu: 1}"),
    ("{at: 1s, cpu: {node: a}}", "5:24: faults[0].cpu.to: missing; write for example cpu: {node: web, to: 0.1}"),
    ("{at: 1s, cpu: {node: a, to: 0}}", "5:38: faults[0].cpu.to: 0: the speed of a CPU must be more than 0"),
    ("{at: 1s, cpu: {node: a, to: 10%}}", "5:38: faults[0].cpu.to: 10%: the speed of a CPU must be a number, such as 10, 0.5 or 1/3"),
    ("{at: 1s, cpu: a}", "5:24: faults[0].cpu: must be a mapping of fields, not 'a'; write for example cpu: {node: web, to: 0.1}"),
    ("{at: 1s, memory: {node: c, leave: 16MiB}}", "5:34: faults[0].memory.node: unknown node c; known: a, b"),
    ("{at: 1s, memory: {node: a, leave: 16}}", "5:44: faults[0].memory.leave: 16: a memory needs a unit: write 16KB (or B, MB, GB, KiB, MiB, GiB)"),
    ("{at: 1s, memory: {node: a, leave: 16kB}}", "5:44: faults[0].memory.leave: 16KB: the memory of a node must be at least 1MiB"),
    ("{at: 1s, memory: a}", "5:27: faults[0].memory: must be a mapping of fields, not 'a'; write for example memory: {node: db1, leave: 16MiB}"),
    ("{at: 1s, for: 2s, memory: {node: a, leave: 16MiB}}, {at: 2s, memory: {node: a, leave: 8MiB}}", "5:79: faults[1].memory: memory of a is taken already by fault1, faults[0], at that time"),
    ("{at: 1s, for: 2s, crash: a}, {at: 2s, memory: {node: a, leave: 8MiB}}", "5:56: faults[1].memory: a is off at 2s, by fault1, faults[0]; let this begin before that, or when a is on again"),
    ("{at: 1s, load: {from: a, to: c, syn: 1/s}}", "5:39: faults[0].load.to: unknown node c; known: a, b"),
    ("{at: 1s, load: {from: c, to: a, syn: 1/s}}", "5:32: faults[0].load.from: unknown node c; known: a, b"),
    ("{at: 1s, load: {from: 'c*', to: a, syn: 1/s}}", "5:32: faults[0].load.from: c*: meets no node"),
    ("{at: 1s, load: {from: a, to: a, syn: 1/s}}", "5:39: faults[0].load.to: a is the node that sends; a load is of two nodes"),
    ("{at: 1s, load: {from: a, to: b}}", "5:25: faults[0].load: needs what is sent, one of syn, udp, http, as in http: 100/s"),
    ("{at: 1s, load: {from: a, to: b, syn: 1/s, udp: 1/s}}", "5:25: faults[0].load: needs what is sent, one of syn, udp, http, as in http: 100/s"),
    ("{at: 1s, load: {from: a, to: b, syn: 100}}", "5:47: faults[0].load.syn: 100: a load is so many a second, as in 100/s or 0.5/s"),
    ("{at: 1s, load: {from: a, to: b, syn: 0/s}}", "5:47: faults[0].load.syn: 0/s: a load is more than 0/s and at most 1000000/s"),
    ("{at: 1s, load: {from: a, to: b, udp: 1/s, path: /x}}", "5:25: faults[0].load: path goes with http"),
    ("{at: 1s, load: {from: a, to: b, http: 1/s, size: 1B}}", "5:25: faults[0].load: size goes with udp"),
    ("{at: 1s, load: {from: a, to: b, http: 1/s, path: x}}", "5:59: faults[0].load.path: x: a path begins with /, and has no blanks"),
    ("{at: 1s, load: {from: a, to: b, udp: 1/s, size: 65508B}}", "5:58: faults[0].load.size: 65508B: the size of a datagram is 1B to 65507B"),
    ("{at: 1s, load: {from: a, to: b, syn: 1/s, port: 0}}", "5:58: faults[0].load.port: 0: a port must be from 1 to 65535"),
    ("{at: 1s, load: a}", "5:25: faults[0].load: must be a mapping of fields, not 'a'; write for example load: {from: client, to: web, http: 100/s}"),
    ("{at: 1s, for: 2s, crash: a}, {at: 2s, load: {from: a, to: b, syn: 1/s}}", "5:54: faults[1].load: a is off at 2s, by fault1, faults[0]; let this begin before that, or when a is on again"),
    ("{at: 1s, clock: a}", "5:26: faults[0].clock: must be a mapping of fields, not 'a'; write for example clock: {node: db1, jump: +2s}"),
    ("{for: 9s, random: {every: 2s, for: 1s, of: disk}}", "5:10: faults[0]: random.of[0]: disk alone does not say what is done; write {disk: …}"),
    ("{pause: a}", "5:10: faults[0]: needs either at, an instant, or after, a process or fault that it waits for"),
    ("{at: 1s, after: p, pause: a}", "5:10: faults[0]: needs either at, an instant, or after, a process or fault that it waits for"),
    ("{at: 1s, wait: 1s, pause: a}", "5:10: faults[0]: wait goes with after; at says the instant itself"),
    ("{at: 1s, for: 0s, pause: a}", "5:24: faults[0].for: 0s: must be more than 0"),
    ("{at: 1s, pause: c}", "5:26: faults[0].pause: unknown node c; known: a, b"),
    ("{at: 1s, pause: a/q}", "5:26: faults[0].pause: unknown process of a: q; known: p"),
    ("{at: 1s, pause: b/p}", "5:26: faults[0].pause: unknown process of b: p; known: ping"),
    ("{at: 1s, pause: a/}", "5:26: faults[0].pause: 'a/': write a node, such as db1, or one of its processes, such as db1/server"),
    ("{after: q, pause: a}", "5:18: faults[0].after: unknown process or fault q; known: fault1, p, ping"),
    ("{after: p.start, pause: a}", "5:18: faults[0].after: p.start: p has no moment start; write p, p.begin or p.end"),
    ("{name: p, at: 1s, pause: a}", "5:17: faults[0].name: p is already the name of run[0]; give this one its own with name:"),
    ("{name: x y, at: 1s, pause: a}", "5:17: faults[0].name: 'x y': a fault's name has 1 to 64 letters, digits, dots, dashes and underscores, and does not begin with a dot or dash"),
    ("{name: x, at: 1s, pause: a}, {after: x.end, pause: b}", "5:47: faults[1].after: x.end: x has no end; write for: in it"),
    ("{name: x, after: y, pause: a}, {name: y, after: x, pause: b}", "5:27: faults[0].after: a cycle: x after y after x; none could start"),
    ("{at: 1s, for: 2s, pause: a}, {at: 2s, for: 2s, pause: a/p}", "5:64: faults[1].pause: a/p is paused already by fault1, faults[0], at that time"),
    ("{at: 1s, loss: 1%}", "5:10: faults[0]: needs what it does, one of pause, kill, link, flap, partition, disk, clock, cpu, memory, load, crash, stop, reboot, start, random, as in pause: db1"),
    ("{at: 1s, pause: a, loss: 1%}", "5:10: faults[0]: says what becomes of a link, and not of which; write link: a--b"),
    ("{at: 1s, link: a--b}", "5:10: faults[0]: says not what becomes of link a--b; write for example loss: 30% or down: true"),
    ("{at: 1s, link: a--b, down: false}", "5:37: faults[0].down: false: a fault has a link down, or does not speak of it"),
    ("{at: 1s, link: a--c, down: true}", "5:25: faults[0].link: a--c: no such link; known: a:eth0--b:eth0"),
    ("{at: 1s, link: a--b, loss: 300%}", "5:37: faults[0].loss: 300%: a loss can be at most 100%"),
    ("{at: 1s, link: a--b, reorder: 5%}", "5:40: faults[0].reorder: reordering sends packets at once while others are delayed; write delay: too"),
    ("{at: 1s, link: a--b, trace: {schedule: [[0s, 1Mbit]]}}", "5:38: faults[0].trace: a trace is of the whole run; change the rate: instead"),
    ("{at: 1s, flap: {link: a--b, down: 1us, up: 1s}}", "5:44: faults[0].flap.down: 1us: must be at least 1ms"),
    ("{at: 1s, flap: {link: b--c, down: 1s, up: 1s}}", "5:32: faults[0].flap.link: b--c: no such link; known: a:eth0--b:eth0"),
    ("{at: 1s, for: 2s, link: a--b, loss: 1%}, {at: 2s, link: b--a, a_to_b: {loss: 2%}}", "5:66: faults[1].link: loss of link a:eth0--b:eth0 is said already by fault1, faults[0], at that time"),
    ("{at: 1s, for: 2s, link: a--b, down: true}, {at: 2s, flap: {link: 'b:eth0--a', down: 1s, up: 1s}}", "5:68: faults[1].flap: down of link a:eth0--b:eth0 is said already by fault1, faults[0], at that time"),
    ("{at: 1s, link: a--b, b_to_a: {delay: 9ms}}, {at: 2s, link: a--b, netem: delay 1ms}", "5:69: faults[1].link: delay of link a:eth0--b:eth0 is said already by fault1, faults[0], at that time"),
    ("{at: 1s, crash: c}", "5:26: faults[0].crash: unknown node c; known: a, b"),
    ("{at: 1s, for: 1s, start: a}", "5:10: faults[0]: a start has no duration; the node is on from then on"),
    ("{at: 1s, for: 1s, reboot: a}", "5:10: faults[0]: a reboot takes as long as the node's programs take to end; write stop: with for:"),
    ("{at: 1s, start: a}", "5:26: faults[0].start: a is on at 1s; a node goes off by crash: or stop: without for:"),
    ("{at: 1s, for: 1s, crash: a}, {at: 2s, start: a}", "5:55: faults[1].start: a is on at 2s; a node goes off by crash: or stop: without for:"),
    ("{at: 1s, for: 2s, crash: a}, {at: 2s, pause: a/p}", "5:55: faults[1].pause: a is off at 2s, by fault1, faults[0]; let this begin before that, or when a is on again"),
    ("{at: 1s, stop: a}, {at: 2s, crash: a}", "5:45: faults[1].crash: a is off at 2s, by fault1, faults[0]; let this begin before that, or when a is on again"),
    ("{at: 1s, crash: a}, {at: 1s, reboot: a}", "5:47: faults[1].reboot: a is off at 1s, by fault1, faults[0]; let this begin before that, or when a is on again"),
    ("{name: x, at: 1s, crash: a}, {after: x.end, pause: b}", "5:47: faults[1].after: x.end: x has no end; write for: in it"),
    ("{at: 1s, kill: a}", "5:25: faults[0].kill: a: a kill is of a process; write one of its processes, such as a/server"),
    ("{at: 1s, kill: a/q}", "5:25: faults[0].kill: unknown process of a: q; known: p"),
    ("{at: 1s, for: 1s, kill: a/p}", "5:10: faults[0]: a kill has no duration; restart: says how long after it the process is started again"),
    ("{at: 1s, restart: 1s, pause: a/p}", "5:10: faults[0]: restart goes with kill: db1/server"),
    ("{name: x, at: 1s, kill: a/p}, {after: x.end, pause: b}", "5:48: faults[1].after: x.end: x has no end; write restart: in it"),
    ("{at: 1s, restart: 2s, kill: a/p}, {at: 2s, kill: a/p}", "5:59: faults[1].kill: a/p is killed already by fault1, faults[0], at that time"),
    ("{at: 1s, partition: [[a, b]]}", "5:30: faults[0].partition.groups: needs two groups of nodes or more, as in [[db1, db2], [db3]]"),
    ("{at: 1s, partition: [[a], [a, b]]}", "5:36: faults[0].partition[1]: a is on both sides"),
    ("{at: 1s, partition: [[a], [c]]}", "5:36: faults[0].partition[1]: unknown node or group c; known: a, b"),
    ("{at: 1s, partition: [[a], ['c*']]}", "5:36: faults[0].partition[1]: c*: meets no node"),
    ("{at: 1s, partition: [['*', a], [b]]}", "5:31: faults[0].partition[0]: a is named twice"),
    ("{at: 1s, partition: {from: [a]}}", "5:30: faults[0].partition: needs [[a], [b, c]], {from: [a], to: [b]}, or one of isolate, halves, majority, ring, bridge"),
    ("{at: 1s, partition: {halves: [a], isolate: b}}", "5:30: faults[0].partition: needs [[a], [b, c]], {from: [a], to: [b]}, or one of isolate, halves, majority, ring, bridge"),
    ("{at: 1s, partition: {ring: [a, b]}}", "5:37: faults[0].partition.ring: a, b: ring needs at least 4 nodes"),
    ("{at: 1s, for: 1s, pause: 3 of *}", "5:35: faults[0].pause: 3 of *: there are only 2"),
    ("{at: 1s, for: 1s, pause: 120% of *}", "5:35: faults[0].pause: 120% of *: draws none or more than all; write one of *, 2 of * or 50% of *"),
    ("{at: 1s, for: 1s, pause: one of x*}", "5:35: faults[0].pause: x*: meets no node"),
    ("{at: 1s, kill: '*/x*'}", "5:25: faults[0].kill: unknown process of *: x*; known: p, ping"),
    ("{at: 1s, link: 'b--x*', loss: 1%}", "5:25: faults[0].link: b--x*: meets no link; write a pattern such as db*--*, or a link, such as a--b"),
    ("{at: 1s, partition: [[one of a], [one of a]]}", "5:43: faults[0].partition[1]: one of a: there is none left"),
    ("{random: {every: 2s, for: 1s, of: pause}}", "5:19: faults[0].random: draws faults without end; write for: beside it, how long, or at: and the lab's stop_after:"),
    ("{for: 9s, random: {every: 2s, for: 5s..1s, of: pause}}", "5:45: faults[0].random.for: 5s..1s: a duration is a number with a unit, such as 20ms"),
    ("{for: 9s, random: {every: 2s, for: uniform 5s..1s, of: pause}}", "5:45: faults[0].random.for: uniform 5s..1s: write a duration of more than 0, exponential 20s, or uniform 1s..5s"),
    ("{for: 9s, random: {every: 1us, for: 1s, of: pause}}", "5:36: faults[0].random.every: 1us: must be at least 1ms"),
    ("{for: 9s, random: {every: 2s, for: 1s, of: puase}}", "5:10: faults[0]: random.of[0]: unknown kind of fault puase; did you mean pause?"),
    ("{for: 9s, random: {every: 2s, for: 1s, of: flap}}", "5:10: faults[0]: random.of[0]: flap alone does not say what is done; write {flap: …}"),
    ("{for: 9s, random: {every: 2s, for: 1s, of: {pause: a, at: 1s}}}", "5:10: faults[0]: random.of[0]: at is not part of a kind of fault; when it is, and for how long, is drawn"),
    ("{for: 9s, random: {every: 2s, for: 1s, of: {link: a--b, loss: 300%}}}", "5:10: faults[0]: random.of[0].loss: 300%: a loss can be at most 100%"),
    ("{for: 9s, random: {every: 2s, for: 1s, of: {cpu: 0.2}}}", "5:10: faults[0]: random.of[0].cpu: must be a mapping of fields, not '0.2'; write for example cpu: {node: web, to: 0.1}"),
    ("{for: 9s, random: {every: 2s, for: 1s, of: {memory: {node: a}}}}", "5:10: faults[0]: random.of[0].memory.leave: missing; write for example memory: {node: db1, leave: 16MiB}"),
    ("{for: 9s, random: {every: 2s, for: 1s, of: {link: a--b, los: 1%}}}", "5:10: faults[0]: random.of[0].los: unknown field; did you mean loss?"),
    ("{for: 9s, random: {every: 2s, for: 1s, of: kill}}", "5:28: faults[0].random: kill: no process in the background on a, b, to be killed"),
    ("{for: 9h, random: {every: 2s, for: 1s, of: pause}}", "5:28: faults[0].random: draws more than 1000 faults; have one less often, with every:"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "said"), MISTAKES, ids=[written for written, _ in MISTAKES])
def test_a_mistake_in_a_fault_is_told_in_one_line(written: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(f"{HEAD}faults: [{written}]\n", "lab.yaml")
    assert str(caught.value) == f"lab.yaml:{said}"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{at: 3s, pause: a}", "5:14: faults[0].at: 3s: never comes, since stop_after ends the run at 2s"),
        ("{at: 1s, for: 2s, pause: a}", "5:23: faults[0].for: ends at 3s, after stop_after has ended the run at 2s"),
    ],
)
def test_a_fault_beyond_the_end_of_the_run_is_told(written: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(f"{HEAD}faults: [{written}]\nstop_after: 2s\n", "lab.yaml")
    assert said[4:] in str(caught.value)


def test_pauses_of_different_processes_and_one_after_the_other_are_right() -> None:
    lab = loads(
        HEAD
        + "faults: [{at: 1s, for: 1s, pause: a/p}, {at: 1s, for: 1s, pause: b/ping}, {at: 2s, for: 1s, pause: a}]\n",
        "lab.yaml",
    )
    assert [(fault.name, fault.words) for fault in lab.faults] == [
        ("fault1", "pause a/p"),
        ("fault2", "pause b/ping"),
        ("fault3", "pause a"),
    ]


def test_two_faults_of_one_disk_at_one_time_are_told() -> None:
    of = "disk: {node: a, errors: 5%}"
    lab = f"name: x\nnodes: {{a: {{disk: nvme}}}}\nfaults: [{{at: 1s, for: 1s, {of}}}, {{at: 1500ms, for: 1s, {of}}}]\n"
    with pytest.raises(LabError) as caught:
        loads(lab, "lab.yaml")
    assert "the disk of a is broken already by fault1, faults[0], at that time" in str(caught.value)
    assert loads(lab.replace("1500ms", "2s"), "lab.yaml").faults[1].words == "disk a errors 5%"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{at: 1s, cpu: {node: a, to: 0.5}}", "faults[0].cpu.to: 0.5: a has 0.5; write less"),
        ("{at: 1s, for: 2s, cpu: {node: a, to: 0.1}}, {at: 2s, cpu: {node: 'a*', to: 0.2}}", "faults[1].cpu: the CPU of a is slow already by fault1, faults[0], at that time"),
        ("{at: 1s, for: 2s, crash: a}, {at: 2s, cpu: {node: a, to: 0.1}}", "faults[1].cpu: a is off at 2s, by fault1, faults[0]; let this begin before that, or when a is on again"),
        ("{at: 3s, for: 8s, cpu: {node: a, to: 0.1}}", "faults[0].for: ends at 11s, after stop_after has ended the run at 10s"),
    ],
)  # fmt: skip
def test_slow_cpus_that_cannot_be_are_told(written: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(f"name: x\nnodes: {{a: {{cpu: 0.5}}, b: {{}}}}\nstop_after: 10s\nfaults: [{written}]\n", "lab.yaml")
    assert str(caught.value).endswith(said)


def test_memory_of_which_nothing_is_taken_is_told() -> None:
    lab = "name: x\nnodes: {a: {memory: 64MiB}}\nfaults: [{at: 1s, memory: {node: a, leave: 64MiB}}]\n"
    with pytest.raises(LabError, match=r"faults\[0\].memory.leave: 64MiB: a has 64MiB; write less"):
        loads(lab, "lab.yaml")


def test_a_cpu_that_cannot_be_slower_is_told() -> None:
    nodes, fault = "a: {cpu: 0.5}, b: {guest: other}", "faults: [{at: 1s, cpu: {node: a, to: 0.1}}]"
    with pytest.raises(
        LabError, match=r"faults\[0\].cpu.node: a is alone in its guest and has all of its CPU, no share"
    ):
        planned(loads(f"name: x\nnodes: {{{nodes}}}\n{fault}\n", "lab.yaml"))
    with pytest.raises(LabError, match=r"faults\[0\].cpu: on the event drive CPUs take no time; use the work drive"):
        loads(f"name: x\ntime: {{drive: event}}\nnodes: {{a: {{}}}}\n{fault}\n", "lab.yaml")


def test_a_name_with_dots_is_a_name_before_it_is_a_moment() -> None:
    lab = loads(
        "name: x\nnodes: {a: {}}\nrun: [{on: a, name: p.end, exec: sleep 1}, {on: a, exec: 'true', after: p.end}]\n",
        "lab.yaml",
    )
    assert lab.run[1].after == ["p.end"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("restart: always", "always: the run would never end; write background: true too, or on-failure"),
        ("restart: sometimes", "sometimes: not when to start it again; use always or on-failure"),
        ("restart: {delay: 0s}", "0s: must be more than 0"),
    ],
)
def test_a_restart_that_cannot_be_is_told(written: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(f"name: x\nnodes: {{a: {{}}}}\nrun: [{{on: a, exec: sleep 1, {written}}}]\n", "lab.yaml")
    assert said in str(caught.value)
