"""What is set on the command line replaces what the file says, and only where there is such a place."""

from __future__ import annotations

import pytest

from dilaton.lab.errors import LabError
from dilaton.lab.loader import loads
from dilaton.lab.settings import parse_setting

LAB = """
name: lab
nodes: {a: , b: }
links: [{endpoints: [a, b], rate: 1Gbit}, a -- b]
"""


def test_fields_are_replaced_and_made() -> None:
    settings = [
        parse_setting(text) for text in ("links.0.rate=10Mbit", "time.tdf=1/3", "links.0.queue={limit: 7}", "seed=4")
    ]
    lab = loads(LAB, "lab.yaml", settings)
    assert lab.links[0].rate_bit_per_s == 10_000_000
    assert lab.time.tdf.denominator == 3
    assert lab.seed == 4
    assert "7" in str(lab.links[0].queue)


def test_items_are_appended() -> None:
    texts = ("changes.+={at: 1s, link: a--b, delay: 1ms}", "changes.+={at: 2s, link: a--b, delay: 2ms}")
    single = LAB.replace(", a -- b]", "]")
    assert [change.at_ns for change in loads(single, "lab.yaml", [*map(parse_setting, texts)]).changes] == [
        10**9,
        2 * 10**9,
    ]


@pytest.mark.parametrize("name", ["net.ipv4.tcp_sack", "net/ipv4/tcp_sack"])
def test_kernel_parameters_are_set_by_their_names(name: str) -> None:
    text = LAB.replace("b: }", "b: {sysctls: {net.ipv4.tcp_sack: 1}}}")
    lab = loads(text, "lab.yaml", [parse_setting(f"nodes.{node}.sysctls.{name}=0") for node in ("a", "b")])
    assert [lab.nodes[node].sysctls for node in ("a", "b")] == [{"net/ipv4/tcp_sack": "0"}] * 2


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("links.2.rate=1Gbit", "--set links.2.rate: links is a list of 2: 2 is none of its items, 0 to 1"),
        ("links.x.rate=1Gbit", "links is a list of 2: x is none of its items"),
        ("name.first=x", "--set name.first: name is lab, which has no parts; set all of it"),
        ("links.0.rate=[", "--set links.0.rate:1:"),
        ("links.0.rate=10", "--set links.0.rate: 10: "),
        ("links.0.rat=10Mbit", "--set links.0.rat: unknown field"),
        ("links.0={endpoints: a -- b, rate: 10}", "--set links.0: links[0].rate: 10: "),
        ("links.0.delay=10", "--set links.0.delay: 10: "),
        ("name.+=x", "--set name.+: name is no list"),
        ("name.first.+=x", "--set name.first.+: name is lab, which has no parts"),
        ("links.+={endpoints: a -- b, rate: 10}", "--set links.2: links[2].rate: 10: "),
        ("links.1.delay.jitter=1ms", "links.1 is a -- b, which has no parts"),
        ("time.tdf=x", "--set time.tdf: x: "),
        ("nodes.a.sysctl.net.ipv4.tcp_sack=0", "--set nodes.a.sysctl.net.ipv4.tcp_sack: nodes.a.sysctl: unknown field"),
        ("nodes.a.sysctls.net=0", "--set nodes.a.sysctls.net: 'net': not a kernel parameter"),
    ],
)
def test_a_setting_that_cannot_be_is_told(setting: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(LAB, "lab.yaml", [parse_setting(setting)])
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["links.0.rate", "=5", "seed=", " = "])
def test_a_setting_is_a_path_and_a_value(text: str) -> None:
    with pytest.raises(ValueError, match="write PATH=VALUE"):
        parse_setting(text)
