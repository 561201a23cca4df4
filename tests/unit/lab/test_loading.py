"""A lab file becomes a `Lab` with every value normalised, and every mistake in it is told at once."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dilaton.lab import Lab, LabError, load, loads
from dilaton.lab.model import Process, Ready
from dilaton.lab.parts.impairments import BdpLimit, ByteLimit, Delay, PacketLimit
from dilaton.lab.parts.links import Endpoint, Link
from dilaton.lab.parts.nodes import Node

ROOT = Path(__file__).resolve().parents[3]
HEAD = "name: x\nnodes: {a: {}, b: {}, c: {}}\n"


def link(fields: str) -> Link:
    """The only link of a lab, given the fields beside its endpoints."""
    return loads(f"{HEAD}links: [{{endpoints: a -- b, {fields}}}]\n", "lab.yaml").links[0]


def process(fields: str) -> Process:
    """The only process of a lab, given the fields beside its node."""
    return loads(f"{HEAD}run: [{{on: a, {fields}}}]\n", "lab.yaml").run[0]


def problems(text: str) -> list[str]:
    with pytest.raises(LabError) as caught:
        loads(text, "lab.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_the_smallest_lab_has_the_documented_defaults() -> None:
    lab = loads("name: x\nnodes: {a: {}}\n", "lab.yaml")
    assert (lab.seed, lab.time.drive, lab.time.tdf) == (1, "work", Fraction(1))
    assert lab.nodes["a"].image == "host"
    assert (lab.links, lab.run, lab.expect, lab.stop_after_ns) == ([], [], [], None)


def test_a_node_may_be_empty() -> None:
    assert loads("name: x\nnodes:\n  a:\n  b:\n", "lab.yaml").nodes == {"a": Node(), "b": Node()}


@pytest.mark.parametrize(
    ("text", "tdf"), [("0.1", Fraction(1, 10)), ("1/3", Fraction(1, 3)), ('"2.5"', Fraction(5, 2))]
)
def test_the_time_dilation_factor_is_exactly_what_is_written(text: str, tdf: Fraction) -> None:
    assert loads(f"{HEAD}time: {{tdf: {text}}}\n", "lab.yaml").time.tdf == tdf


def test_every_form_of_a_link_names_the_same_endpoints() -> None:
    forms = ['"a:eth0 -- b:eth0"', "a -- b", '{endpoints: ["a:eth0", "b:eth0"]}', "{endpoints: a:eth0 -- b}"]
    labs = [loads(f"{HEAD}links: [{form}]\n", "lab.yaml") for form in forms]
    expected = (Endpoint(node="a", interface="eth0"), Endpoint(node="b", interface="eth0"))
    assert [lab.links[0].endpoints for lab in labs] == [expected] * len(forms)


def test_interfaces_without_a_name_get_the_next_free_one_of_their_node() -> None:
    lab = loads(f'{HEAD}links: [a -- b, "a:eth1 -- c", a -- c, b -- c]\n', "lab.yaml")
    names = [tuple(f"{end.node}:{end.interface}" for end in link.endpoints) for link in lab.links]
    assert names == [("a:eth0", "b:eth0"), ("a:eth1", "c:eth0"), ("a:eth2", "c:eth1"), ("b:eth1", "c:eth2")]


def test_a_direction_replaces_only_what_it_writes() -> None:
    both = link("rate: 100Mbit, delay: 20ms, b_to_a: {rate: 10Mbit, loss: 1%}")
    there, back = both.direction("a_to_b"), both.direction("b_to_a")
    assert (there.rate_bit_per_s, there.delay_ns, there.loss.random) == (100_000_000, 20_000_000, 0.0)
    assert (back.rate_bit_per_s, back.delay_ns, back.loss.random) == (10_000_000, 20_000_000, 0.01)


def test_a_direction_can_replace_a_value_by_the_default() -> None:
    assert link("delay: 20ms, loss: 1%, b_to_a: {delay: 0s, loss: 0%}").direction("b_to_a").delay_ns == 0
    assert link("delay: 20ms, b_to_a: {delay: 0s}").round_trip_ns == 20_000_000


def test_a_queue_limit_is_in_packets_bytes_or_bandwidth_delay_products() -> None:
    base = "rate: 1Gbit, delay: 1ms, queue"
    assert link(f"{base}: {{limit: 1000}}").queue.limit == PacketLimit(packets=1000)
    assert link(f"{base}: {{limit: 256KB}}").queue.limit == ByteLimit(bytes=256_000)
    assert link(f"{base}: {{limit: 0.5bdp}}").queue.limit == BdpLimit(factor=Fraction(1, 2))


def test_a_bandwidth_delay_product_may_take_its_delay_from_the_other_direction() -> None:
    assert link("rate: 1Gbit, a_to_b: {delay: 1ms}, queue: {limit: 1bdp}").round_trip_ns == 1_000_000


def test_a_command_is_split_into_words_without_a_shell() -> None:
    assert process("exec: \"sh -c 'echo $HOME; ls'\"").argv == ["sh", "-c", "echo $HOME; ls"]


def test_words_that_yaml_could_take_for_other_things_stay_as_written() -> None:
    assert process("exec: [seq, 1.10, no, 0x10, 'true', ~]").argv == ["seq", "1.10", "no", "0x10", "true", "~"]
    assert process("exec: env, env: {A: 1e3, B: off}").env == {"A": "1e3", "B": "off"}


def test_a_node_may_have_nothing_written_or_what_programs_write_for_nothing() -> None:
    assert list(loads("name: x\nnodes: {a: , b: null, c: ~, d: {}}\n", "lab.yaml").nodes) == ["a", "b", "c", "d"]


def test_a_process_is_named_after_its_program() -> None:
    assert process("exec: /usr/bin/ping b").name == "ping"


def test_a_process_takes_every_field() -> None:
    everything = process(
        "name: p, exec: ping b, env: {A: b}, cwd: /usr, user: nobody, stdin: /etc/hosts, start: 1s, stop: 2s, "
        "timeout: 3s, background: true, expect_exit: 1, ready: {tcp: 80, timeout: 5s}"
    )
    assert everything == Process(
        on="a", name="p", argv=["ping", "b"], env={"A": "b"}, cwd="/usr", user="nobody", stdin="/etc/hosts",
        start_ns=10**9, stop_ns=2 * 10**9, timeout_ns=3 * 10**9, background=True, expect_exit=1,
        ready=Ready(tcp=80, timeout_ns=5 * 10**9),
    )  # fmt: skip


def test_any_exit_status_may_be_expected() -> None:
    assert process("exec: ping b, expect_exit: any").expect_exit is None


@pytest.mark.parametrize("written", ["net.ipv4.tcp_rmem", "net/ipv4/tcp_rmem"])
def test_a_kernel_parameter_is_written_with_dots_or_slashes(written: str) -> None:
    lab = loads(f"name: x\nnodes: {{a: {{sysctls: {{{written}: 4096 131072 6291456}}}}}}\n", "lab.yaml")
    assert lab.nodes["a"].sysctls == {"net/ipv4/tcp_rmem": "4096 131072 6291456"}


def test_anchors_and_merges_share_fields_between_links() -> None:
    lab = loads(
        f"{HEAD}links:\n  - &fast {{endpoints: a -- b, rate: 1Gbit, delay: 1ms}}\n"
        "  - {<<: *fast, endpoints: b -- c, delay: 2ms}\n",
        "lab.yaml",
    )
    assert [(link.rate_bit_per_s, link.delay_ns) for link in lab.links] == [(10**9, 10**6), (10**9, 2 * 10**6)]


def test_a_lab_built_from_python_takes_numbers_as_normalised() -> None:
    ends = (Endpoint(node="a"), Endpoint(node="b"))
    lab = Lab(
        name="x",
        nodes={"a": Node(), "b": Node()},
        links=[Link(endpoints=ends, rate_bit_per_s=10**9, delay=Delay(mean_ns=5))],
    )
    assert lab == loads("name: x\nnodes: {a: {}, b: {}}\nlinks: [{endpoints: a -- b, rate: 1Gbit, delay: 5ns}]\n", "x")


def test_the_name_of_an_attribute_is_not_a_field() -> None:
    assert problems(f"{HEAD}links: [{{endpoints: a -- b, delay_ns: 5}}]\n") == [
        "lab.yaml:3:29: links[0].delay_ns: unknown field; did you mean delay?"
    ]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = (
        "name: x\nnodes: {a: {}, b: {}}\ntime: {tdf: 0}\nlinks:\n  - {endpoints: a -- z, rate: 1Gbit}\n"
        "  - {endpoints: a -- b, delay: 20}\nrun:\n  - {on: a, exec: ping b, after: pong}\n"
        "  - {on: a, name: other, exec: ping b, colour: red}\n"
    )
    assert [problem.split(": ")[1] for problem in problems(text)] == [
        "time.tdf",
        "links[0].endpoints[1]",
        "links[1].delay",
        "run[0].after",
        "run[1].colour",
    ]


def test_a_mistake_makes_no_others_of_what_refers_to_it() -> None:
    text = f'{HEAD}run: [{{on: a, exec: "ping \'b"}}]\nexpect: [ping.loss == 0%]\n'
    assert problems(text) == ["lab.yaml:3:21: run[0].exec: ping 'b: a quote is not closed"]


def test_nested_aliases_cannot_grow_without_bound() -> None:
    layers = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 10))
    assert problems(f"l0: &l0 [x]\n{layers}") == [
        "lab.yaml:6:15: not a lab: more than 50000 values, with what aliases stand for"
    ]


def test_deep_nesting_is_refused() -> None:
    assert problems("[" * 2000) == ["lab.yaml:1:51: not a lab: nested more than 50 deep"]


def test_what_was_written_cannot_break_the_line_of_its_error() -> None:
    assert problems('name: "a\\nb\\e[31m"\nnodes: {a: {}}\n')[0].isprintable()


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab:-{}[],\n \"'&*!|>?%0.<#"), max_size=40))
def test_any_text_is_a_lab_or_a_lab_error(text: str) -> None:
    try:
        loads(text, "lab.yaml")
    except LabError as error:
        assert error.problems


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(LabError) as caught:
        load(tmp_path / "none.yaml")
    assert str(caught.value) == f"{tmp_path}/none.yaml: cannot be read: No such file or directory"


def test_a_mistyped_file_or_directory_is_told_with_the_lab_of_a_close_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for directory in ("first", "firth"):
        (tmp_path / directory).mkdir()
    (tmp_path / "first" / "lab.yaml").write_text(HEAD)
    for written, meant in (("firts", "first"), ("first/lab.yml", "first/lab.yaml")):
        with pytest.raises(LabError) as caught:
            load(written)
        assert str(caught.value) == f"{written}: cannot be read: No such file or directory; did you mean {meant}?"
    with pytest.raises(LabError, match=r"No such file or directory$"):
        load("firts/lab.yaml")


def test_a_directory_is_told_with_the_lab_in_it(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(HEAD)
    with pytest.raises(LabError) as caught:
        load(tmp_path)
    assert str(caught.value) == f"{tmp_path}: is a directory; did you mean {tmp_path}/lab.yaml?"


def test_a_file_that_is_not_utf_8_is_told_with_the_byte(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_bytes(b"name: x\nseed: \xff\n")
    with pytest.raises(LabError) as caught:
        load(tmp_path / "lab.yaml")
    assert str(caught.value) == f"{tmp_path}/lab.yaml:2:7: not UTF-8 text: byte 0xff; save the file as UTF-8"


def test_a_file_too_large_for_a_lab_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.touch()
    os.truncate(path, 2**30)
    with pytest.raises(LabError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: is larger than 4194304 bytes; a lab is a small YAML file"


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*/lab.yaml")), ids=lambda path: path.parent.name)
def test_every_example_is_a_good_lab(path: Path, built_examples: None) -> None:
    assert load(path).name == path.parent.name
