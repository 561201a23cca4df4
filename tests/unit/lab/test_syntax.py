"""The small notations of a lab file mean what users of the same notation elsewhere expect."""

from __future__ import annotations

import pytest

from dilaton.lab.text import syntax


@pytest.mark.parametrize(
    "regex",
    [
        "",
        "^listening on",
        r"\d+ packets",
        "[]a-z]+?",
        r"(?i)ready\.",
        "(?:a|b){2,3}",
        "(?P<port>[0-9]+)",
        r"\{\"start\"",
        "}",
    ],
)
def test_a_regular_expression_that_all_engines_know_is_taken(regex: str) -> None:
    assert syntax.parse_regex(regex) == regex


@pytest.mark.parametrize(
    "regex",
    [
        "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1", "(?P<n>a)(?P=n)", "(a)(?(1)b)", "(?>a)", "a++", "a{2}+", "a{,2}",
        '{"start"', "(?#note)", "[[:alpha:]]", "[a&&b]", r"[\b]", r"a\Z", r"\0", "(?a)a", "(", "*", "[",
    ],
)  # fmt: skip
def test_a_regular_expression_that_the_agent_does_not_know_is_refused(regex: str) -> None:
    with pytest.raises(ValueError, match="regular expression"):
        syntax.parse_regex(regex)


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("ping -c 3 b", ["ping", "-c", "3", "b"]),
        ("""sh -c 'a | b' "c d" e\\ f""", ["sh", "-c", "a | b", "c d", "e f"]),
        ("echo a#b", ["echo", "a#b"]),
        ("test '' = x", ["test", "", "=", "x"]),
    ],
)
def test_a_command_is_split_as_a_shell_splits_words(command: str, argv: list[str]) -> None:
    assert syntax.parse_exec(command) == argv


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("net.ipv4.tcp_sack", "net/ipv4/tcp_sack"),
        ("net/ipv4/tcp_sack", "net/ipv4/tcp_sack"),
        ("net.ipv4.conf.eth0/1.rp_filter", "net/ipv4/conf/eth0.1/rp_filter"),
        ("net/ipv4/conf/eth0.1/rp_filter", "net/ipv4/conf/eth0.1/rp_filter"),
    ],
)
def test_a_kernel_parameter_separates_with_what_comes_first(written: str, key: str) -> None:
    assert syntax.parse_sysctl_key(written) == key


@pytest.mark.parametrize("written", ["", "hostname", "/etc/passwd", "net/../x", "net..x", "net/ipv4/", "net/ipv4/a b"])
def test_a_kernel_parameter_cannot_leave_its_directory(written: str) -> None:
    with pytest.raises(ValueError, match="not a kernel parameter"):
        syntax.parse_sysctl_key(written)


@pytest.mark.parametrize("name", ["a", "n0", "core-1", "A9", "x" * 63])
def test_a_host_name_is_a_node_name(name: str) -> None:
    assert syntax.parse_node_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "a.b", "a_b", "ä", "x" * 64, "7", "0x1f", "localhost", "a\n"])
def test_what_is_no_host_name_is_no_node_name(name: str) -> None:
    with pytest.raises(ValueError, match=name.strip() or "host name"):
        syntax.parse_node_name(name)
