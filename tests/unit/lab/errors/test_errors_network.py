"""Mistakes in time, nodes and links: each gets its one line, with the place, the fault and the fix."""

from __future__ import annotations

import pytest

from dilaton.lab import LabError, loads

HEAD = "name: x\nnodes: {a: {}, b: {}}\n"
"""The first two lines of most labs here."""

TIME = [
    (
        "an unknown drive",
        HEAD + "time: {drive: fast}\n",
        "lab.yaml:3:15: time.drive: fast: not a drive; use wall, work or event",
    ),
    (
        "a time dilation factor of zero",
        HEAD + "time: {tdf: 0}\n",
        "lab.yaml:3:13: time.tdf: 0: the time dilation factor must be more than 0, or auto",
    ),
    (
        "a negative time dilation factor",
        HEAD + "time: {tdf: -1/2}\n",
        "lab.yaml:3:13: time.tdf: -1/2: the time dilation factor must be a number, such as 10, 0.5 or 1/3, or auto",
    ),
    (
        "an absurd time dilation factor",
        HEAD + "time: {tdf: 1000001}\n",
        "lab.yaml:3:13: time.tdf: 1000001: the time dilation factor can be at most 1000000, or auto",
    ),
    (
        "a time dilation factor that is no number",
        HEAD + "time: {tdf: fast}\n",
        "lab.yaml:3:13: time.tdf: fast: the time dilation factor must be a number, such as 10, 0.5 or 1/3, or auto",
    ),
    (
        "a time dilation factor over zero",
        HEAD + "time: {tdf: 1/0}\n",
        "lab.yaml:3:13: time.tdf: 1/0: the time dilation factor cannot be divided by 0; write a number such as 10, 0.5 or 1/3, or auto",
    ),
]

NODES = [
    (
        "a node name with an underscore",
        "name: x\nnodes: {my_node: {}}\n",
        "lab.yaml:2:9: nodes.my_node: 'my_node': a node name is a host name: 1 to 63 letters, digits and dashes, no dash first or last",
    ),
    (
        "a node name that looks like an address",
        "name: x\nnodes: {10: {}}\n",
        "lab.yaml:2:9: nodes.10: '10': programs would take it for an address; write n10",
    ),
    (
        "two node names that differ in case only",
        "name: x\nnodes: {a: {}, A: {}}\n",
        "lab.yaml:2:16: nodes.A: A differs from a only in case, which host names do not tell apart",
    ),
    (
        "an unknown image",
        "name: x\nnodes: {a: {image: debian}}\n",
        "lab.yaml:2:20: nodes.a.image: debian: not in the store of images; dilaton image list shows what is; to bring it from its registry: dilaton image pull debian",
    ),
    (
        "a kernel parameter that leaves its directory",
        "name: x\nnodes: {a: {sysctls: {net/../../x: 1}}}\n",
        "lab.yaml:2:23: nodes.a.sysctls.net/../../x: 'net/../../x': not a kernel parameter; write it as net.ipv4.tcp_rmem or net/ipv4/tcp_rmem",
    ),
]

LINKS = [
    (
        "a link to an unknown node",
        HEAD + "links: [a -- c]\n",
        "lab.yaml:3:9: links[0].endpoints[1]: unknown node c; known: a, b",
    ),
    (
        "a link to a misspelt node",
        "name: x\nnodes: {alpha: {}, beta: {}}\nlinks: [alpha -- beat]\n",
        "lab.yaml:3:9: links[0].endpoints[1]: unknown node beat; did you mean beta?",
    ),
    (
        "an interface used twice",
        HEAD + 'links: ["a:eth0 -- b", "a:eth0 -- b"]\n',
        "lab.yaml:3:24: links[1].endpoints[0]: a:eth0 is already in use by links[0]",
    ),
    (
        "a link from a node to itself",
        HEAD + "links: [a -- a]\n",
        "lab.yaml:3:9: links[0].endpoints: a link joins two nodes, and both ends of this are a",
    ),
    (
        "a link with one endpoint",
        HEAD + "links: [{endpoints: [a]}]\n",
        'lab.yaml:3:21: links[0].endpoints: a link has two endpoints or more: write ["a:eth0", "b:eth0"] or a -- b',
    ),
    (
        "a segment that a node is on twice",
        HEAD + "links: [{endpoints: [a, b, a]}]\n",
        "lab.yaml:3:21: links[0].endpoints: a is twice on this segment, which would be a loop",
    ),
    (
        "an endpoint without an interface after its colon",
        HEAD + 'links: [{endpoints: ["a:", b]}]\n',
        "lab.yaml:3:22: links[0].endpoints[0]: 'a:': an endpoint is a node and an interface, such as a:eth0, or a node alone",
    ),
    (
        "an interface name that is too long",
        HEAD + 'links: ["a:a-very-long-name -- b"]\n',
        "lab.yaml:3:9: links[0].endpoints[0]: 'a-very-long-name': an interface name has 1 to 15 letters, digits, dots, dashes and underscores, and begins with a letter or digit",
    ),
    (
        "an interface name that the kernel has taken",
        HEAD + 'links: ["a:lo -- b"]\n',
        "lab.yaml:3:9: links[0].endpoints[0]: 'lo': the kernel has taken this interface name; choose another, such as eth0",
    ),
    (
        "a delay without a unit",
        HEAD + "links: [{endpoints: a -- b, delay: 20}]\n",
        "lab.yaml:3:36: links[0].delay: 20: a delay needs a unit: write 20ms (or ns, us, s, min, h)",
    ),
    (
        "a delay in a unit of rate",
        HEAD + "links: [{endpoints: a -- b, delay: 20Mbit}]\n",
        "lab.yaml:3:36: links[0].delay: 20Mbit: Mbit is not a unit of a delay: use ns, us, ms, s, min, h",
    ),
    (
        "a negative delay",
        HEAD + "links: [{endpoints: a -- b, delay: -1ms}]\n",
        "lab.yaml:3:36: links[0].delay: -1ms: a delay cannot be negative",
    ),
    (
        "an absurd delay",
        HEAD + "links: [{endpoints: a -- b, delay: 25h}]\n",
        "lab.yaml:3:36: links[0].delay: 25h: a delay can be at most 24h",
    ),
    (
        "a delay finer than a nanosecond",
        HEAD + "links: [{endpoints: a -- b, delay: 1.5ns}]\n",
        "lab.yaml:3:36: links[0].delay: 1.5ns: a part of a nanosecond cannot be kept; write a whole number of them",
    ),
    (
        "a rate without a unit",
        HEAD + "links: [{endpoints: a -- b, rate: 10}]\n",
        "lab.yaml:3:35: links[0].rate: 10: a rate needs a unit: write 10Mbit (or kbit, Gbit, Tbit)",
    ),
    (
        "a rate in a unit of time",
        HEAD + "links: [{endpoints: a -- b, rate: 10ms}]\n",
        "lab.yaml:3:35: links[0].rate: 10ms: ms is not a unit of a rate: use bit, kbit, Mbit, Gbit, Tbit",
    ),
    (
        "a rate that could be bits or bytes",
        HEAD + "links: [{endpoints: a -- b, rate: 10Mbps}]\n",
        "lab.yaml:3:35: links[0].rate: 10Mbps: bps means bytes per second to tc and bits to others: write 10Mbit for bits or 80Mbit for bytes",
    ),
    (
        "a rate of zero",
        HEAD + "links: [{endpoints: a -- b, rate: 0bit}]\n",
        "lab.yaml:3:35: links[0].rate: 0bit: a rate must be more than 0; to let nothing through write loss: 100%",
    ),
    (
        "a negative rate",
        HEAD + "links: [{endpoints: a -- b, rate: -1Gbit}]\n",
        "lab.yaml:3:35: links[0].rate: -1Gbit: a rate cannot be negative",
    ),
    (
        "a rate beyond what is modelled",
        HEAD + "links: [{endpoints: a -- b, rate: 11Tbit}]\n",
        "lab.yaml:3:35: links[0].rate: 11Tbit: a rate can be at most 10Tbit",
    ),
    (
        "a rate of which the kernel would make another one",
        HEAD + "links: [{endpoints: a -- b, rate: 7bit}]\n",
        "lab.yaml:3:35: links[0].rate: 7bit: the rate of a link must be at least 1kbit",
    ),
    (
        "a queue's target beyond a second",
        HEAD + "links: [{endpoints: a -- b, rate: 1Mbit, queue: {discipline: pie, target: 10h}}]\n",
        "lab.yaml:3:75: links[0].queue.target: 10h: a target can be at most 1s",
    ),
    (
        "a loss without a percent sign",
        HEAD + "links: [{endpoints: a -- b, loss: 0.01}]\n",
        "lab.yaml:3:35: links[0].loss: 0.01: a loss needs a percent sign: write 1% if a ratio was meant, or 0.01%",
    ),
    (
        "a loss above all packets",
        HEAD + "links: [{endpoints: a -- b, loss: 101%}]\n",
        "lab.yaml:3:35: links[0].loss: 101%: a loss can be at most 100%",
    ),
    (
        "a queue limit in a unit of rate",
        HEAD + "links: [{endpoints: a -- b, queue: {limit: 10Mbit}}]\n",
        "lab.yaml:3:44: links[0].queue.limit: 10Mbit: a queue limit is not a rate: write packets (1000), a size (256KB), a time (50ms) or bdp (1bdp)",
    ),
    (
        "a queue limit of nothing",
        HEAD + "links: [{endpoints: a -- b, queue: {limit: 0}}]\n",
        "lab.yaml:3:44: links[0].queue.limit: 0: a queue limit in packets must be from 1 to 10000000",
    ),
    (
        "a queue limit in an unknown unit",
        HEAD + "links: [{endpoints: a -- b, queue: {limit: 5 parcels}}]\n",
        "lab.yaml:3:44: links[0].queue.limit: 5 parcels: a queue limit is a number of packets (1000), a size (256KB), a time (50ms) or bandwidth-delay products (1bdp)",
    ),
    (
        "a bandwidth-delay product without a rate",
        HEAD + "links: [{endpoints: a -- b, delay: 1ms, queue: {limit: 1bdp}}]\n",
        "lab.yaml:3:56: links[0].queue.limit: a limit in bdp needs a rate; write rate: too, or a limit in packets or bytes",
    ),
    (
        "a bandwidth-delay product without a delay",
        HEAD + "links: [{endpoints: a -- b, rate: 1Gbit, queue: {limit: 1bdp}}]\n",
        "lab.yaml:3:57: links[0].queue.limit: a limit in bdp needs a delay; write delay: too, or a limit in packets or bytes",
    ),
    (
        "an MTU too small for IPv4",
        HEAD + "links: [{endpoints: a -- b, mtu: 67}]\n",
        "lab.yaml:3:34: links[0].mtu: 67: an MTU must be from 68 to 65535",
    ),
    (
        "an MTU too small for IPv6",
        HEAD + "addressing: {ipv6: 'fd00::/48'}\nlinks: [{endpoints: a -- b, mtu: 1279}]\n",
        "lab.yaml:4:34: links[0].mtu: 1279: IPv6 needs packets of 1280 bytes at least",
    ),
    (
        "an MTU too small for an address of IPv6",
        HEAD + "links: [{endpoints: [{node: a, address: 'fd00::1/64'}, b], mtu: 576}]\n",
        "lab.yaml:3:65: links[0].mtu: 576: IPv6 needs packets of 1280 bytes at least",
    ),
    (
        "a flag that is not true or false",
        HEAD + "links: [{endpoints: a -- b, offload: yes}]\n",
        "lab.yaml:3:38: links[0].offload: yes: must be true or false",
    ),
]


@pytest.mark.parametrize(
    ("text", "line"),
    [pytest.param(text, line, id=mistake) for mistake, text, line in (*TIME, *NODES, *LINKS)],
)
def test_a_mistake_is_told_in_one_line(text: str, line: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(text, "lab.yaml")
    assert str(caught.value) == line
