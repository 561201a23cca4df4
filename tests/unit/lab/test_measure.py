"""What a lab wants measured: values, filters, and every mistake with its line."""

from __future__ import annotations

import pytest

from dilaton.lab import LabError, loads
from dilaton.lab.parts.measure import SNAPLEN_MAX, Capture, Measure
from dilaton.lab.text.filters import FilterError, compile_filter

HEAD = 'name: x\nnodes: {a: {}, b: {}, c: {}}\nlinks: ["a:eth0 -- b:eth0"]\n'

MISTAKES = [
    ("{interfaces: 100}", "4:23: measure.interfaces: 100: a period needs a unit: write 100ms (or ns, us, s, min, h)"),
    ("{tcp: 1us}", "4:16: measure.tcp: 1us: a period must be at least 10us"),
    ("{tpc: 10ms}", "4:11: measure.tpc: unknown field; did you mean tcp?"),
    (
        "100ms",
        "4:10: measure: must be a mapping of fields, not '100ms'; write for example measure: {interfaces: 100ms}",
    ),
    (
        "{capture: a:eth0}",
        "4:20: measure.capture: must be a list, not 'a:eth0'; write for example capture: [\"a:eth0\"]",
    ),
    ("{capture: [a]}", "4:21: measure.capture[0].interface: a: a capture is on an interface; write for example a:eth0"),
    ('{capture: ["d:eth0"]}', "4:21: measure.capture[0].interface: unknown node d; known: a, b, c"),
    ('{capture: ["a:eth1"]}', "4:21: measure.capture[0].interface: a has no interface eth1; it has eth0"),
    (
        '{capture: [{interface: "c:eth0"}]}',
        "4:33: measure.capture[0].interface: c has no interface eth0; it has none, since no link ends there",
    ),
    (
        '{capture: ["a:eth0", {interface: "a:eth0", filter: tcp}]}',
        "4:43: measure.capture[1].interface: a:eth0 is captured already by measure.capture[0]",
    ),
    (
        '{capture: [{interface: "a:eth0", filter: tpc port 80}]}',
        "4:51: measure.capture[0].filter: tpc port 80: not a filter as of tcpdump: can't parse filter expression: syntax error",
    ),
    (
        '{capture: [{interface: "a:eth0", filter: port 70000}]}',
        "4:51: measure.capture[0].filter: port 70000: not a filter as of tcpdump: illegal port number 70000 > 65535",
    ),
    (
        '{capture: [{interface: "a:eth0", filter: ""}]}',
        "4:51: measure.capture[0].filter: an empty filter; leave it out to keep every packet",
    ),
    (
        '{capture: [{interface: "a:eth0", snaplen: 5}]}',
        "4:52: measure.capture[0].snaplen: 5: a snaplen must be from 14 to 262144",
    ),
]


def measure(text: str) -> Measure:
    """What the lab with this `measure:` wants."""
    return loads(f"{HEAD}measure: {text}\n", "lab.yaml").measure


def test_nothing_is_measured_unless_asked_for() -> None:
    assert loads(HEAD, "lab.yaml").measure == Measure()
    assert Measure().tcp_ns is None and Measure().capture == []


def test_periods_and_captures_are_read() -> None:
    text = '{interfaces: 100ms, tcp: 10ms, nodes: 1s, capture: ["a:eth0", {interface: "b:eth0", filter: tcp port 80, snaplen: 96}]}'
    wanted = measure(text)
    assert (wanted.interfaces_ns, wanted.tcp_ns, wanted.nodes_ns) == (100_000_000, 10_000_000, 1_000_000_000)
    assert wanted.capture == [
        Capture(interface="a:eth0"),
        Capture(interface="b:eth0", filter="tcp port 80", snaplen=96),
    ]
    assert wanted.capture[0].snaplen == SNAPLEN_MAX


@pytest.mark.parametrize(("text", "error"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_a_mistake_is_told_with_its_place(text: str, error: str) -> None:
    with pytest.raises(LabError) as caught:
        measure(text)
    assert [str(problem) for problem in caught.value.problems] == [f"lab.yaml:{error}"]


def test_without_a_filter_every_packet_is_kept_up_to_the_snaplen() -> None:
    assert compile_filter(None, 96) == [(6, 0, 0, 96)]


def test_a_filter_becomes_a_program_that_looks_at_the_frame() -> None:
    """As `tcpdump -dd ip`: the Ethernet type, then keep or not."""
    assert compile_filter("ip", 96) == [(0x28, 0, 0, 12), (0x15, 0, 1, 0x0800), (6, 0, 0, 96), (6, 0, 0, 0)]


def test_a_name_in_a_filter_is_no_node() -> None:
    with pytest.raises(FilterError, match="names of nodes mean nothing here, write an address"):
        compile_filter("host a.invalid", 96)
