"""The small notations inside a lab file, other than quantities: endpoints, commands, queue limits, names.

Every function takes what was written and returns its meaning, or raises `ValueError` with the text of the error. The
YAML loader hands every scalar over as text; values that are not text come from Python and have their meaning already.
"""

from __future__ import annotations

import difflib
import itertools
import re
import shlex
import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

from dilaton.lab.kinds import OPENFLOW_PORT
from dilaton.lab.text import units

QUEUE_PACKETS_MAX = 10**7
BDP_FACTOR_MAX = 1000
QUEUE_TIME_MAX_NS = 3600 * 10**9
GUESTS_MAX = 1000
MACHINES_MAX = 64
SEED_MAX = 2**63 - 1
GUEST_MEMORY_MIN, GUEST_MEMORY_MAX = 64 * 2**20, 16 * 2**30
NODE_MEMORY_MIN = 2**20

Split: TypeAlias = int | Literal["auto", "per-node"]
"""Over how many guests nodes are divided: so many, as many as there are cores, or one for each node."""

_FILE_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?", re.ASCII)
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SYSCTL = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_.:@-]+)+", re.ASCII)
_SHORT_LINK = re.compile(r"\s+--\s+|--")
_REGEX_TOKEN = re.compile(
    r"\\x[0-9A-Fa-f]{2}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P?(?:<?[=!]|<\w+>|[a-z]+[:)]|.)|\{[0-9,]*\}?\+?|[*+?]\+|.",
    re.DOTALL,
)
_REGEX_KNOWN = re.compile(
    r"""
    \\ (?: x.. | [afnrtvdDsSwWbBA] | [!-/:;=?@\[-`{-~] )
    | \[ \^? \]? (?: \\ (?: x[0-9A-Fa-f]{2} | [afnrtvdDsSwW!-/:;=?@\[-`{-~] ) | [^\]\\\[&~-] | ([&~-])(?!\1) )* \]
    | \(\?: | \(\?P<[A-Za-z_]\w*> | \(\?[imsx]+[:)]
    | \{ [0-9]+ (?: ,[0-9]* )? \}
    | [^\\\[{]
    """,
    re.ASCII | re.DOTALL | re.VERBOSE,
)
"""The tokens that mean the same to Python's regular expressions and to the agent's."""


ELSEWHERE = {
    "bandwidth": "rate",
    "bw": "rate",
    "datarate": "rate",
    "latency": "delay",
    "hosts": "nodes",
    "switches": "nodes",
    "processes": "run",
    "command": "exec",
    "cmd": "exec",
    "environment": "env",
    "at": "start",
    "start_time": "start",
    "duration": "stop_after",
    "stop_time": "stop_after",
    "source": "endpoints",
    "target": "endpoints",
    "qdisc": "discipline",
    "type": "discipline",
    "ram": "memory",
    "tdf": "time.tdf",
    "drive": "time.drive",
    "max_speed": "time.max_speed",
    "jitter": "delay.jitter",
    "limit": "queue.limit",
    "max_queue_size": "queue.limit",
    "discipline": "queue.discipline",
    "capture": "measure.capture",
}
"""What Mininet, containerlab, ns-3 and Shadow call the fields of a lab; and the place of those often put elsewhere."""


KNOWN_MAX = 1000
"""Names that a wrong one is compared with: a mistake in a large lab costs no more than one in a small lab."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message: `; did you mean X?` if something known is close to `name` or means it, else nothing."""
    meant = {name: name for name in itertools.islice(known, KNOWN_MAX)}
    elsewhere = {word: field for word, field in ELSEWHERE.items() if field.partition(".")[0] in meant}
    meant = elsewhere | meant
    close = [name.lower()] if name.lower() in elsewhere else difflib.get_close_matches(name, meant, n=1, cutoff=0.6)
    return f"; did you mean {meant[close[0]]}?" if close else ""


def parse_text(value: object) -> str:
    """Reads text as it is."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("must not contain a NUL character")
        return value
    raise ValueError(f"must be text, not {units.shown(value)}")


def parse_flag(value: object) -> bool:
    """Reads `true` or `false`."""
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ValueError(f"{units.shown(value)}: must be true or false")


def parse_choice(value: object, what: str, choices: Sequence[str]) -> str:
    """Reads one of some words; `what` is what they are, as in `a drive`."""
    text = units.shown(value)
    if text not in choices:
        hint = did_you_mean(text, choices) or f"; use {', '.join(choices[:-1])} or {choices[-1]}"
        raise ValueError(f"{text}: not {what}{hint}")
    return text


def parse_split(value: object) -> object:
    """Reads over how many guests nodes are divided; named guests, a mapping, leave all others in one."""
    if isinstance(value, dict):
        return 1
    if value in ("auto", "per-node"):
        return value
    try:
        return units.parse_count(value, "a number of guests", 1, GUESTS_MAX)
    except ValueError as error:
        raise ValueError(f"{error}; or write auto, per-node, or guests by name, as {{x: {{tdf: 5}}}}") from error


def parse_named(value: object) -> object:
    """Reads guests by name; a number or word names none."""
    return value if isinstance(value, dict) else {}


def parse_guest_name(value: object) -> str | None:
    """Reads the name of a guest, which becomes part of files' names."""
    return None if value is None else _parse_file_safe(value, "a guest's name")


def parse_volume_name(value: object) -> str:
    """Reads the name of a volume, which becomes part of a directory's name."""
    return _parse_file_safe(value, "a volume's name")


def parse_machine(value: object) -> int:
    """Reads the number of a machine."""
    return units.parse_count(value, "the number of a machine", 0, MACHINES_MAX - 1)


def parse_guest_tdf(value: object) -> Fraction | None:
    """Reads the TDF of a guest."""
    return None if value is None else units.parse_tdf(value)


def parse_memory(value: object) -> int | None:
    """Reads the memory of a guest."""
    if value is None:
        return None
    size = units.parse_size(value, "a memory")
    if not GUEST_MEMORY_MIN <= size <= GUEST_MEMORY_MAX:
        low, high = units.format_size(GUEST_MEMORY_MIN), units.format_size(GUEST_MEMORY_MAX)
        raise ValueError(f"{units.format_size(size)}: the memory of a guest must be from {low} to {high}")
    return size


def parse_node_memory(value: object) -> int | None:
    """Reads the memory of a node."""
    if value is None:
        return None
    size = value if type(value) is int else units.parse_size(value, "a memory")
    if size < NODE_MEMORY_MIN:
        least = units.format_size(NODE_MEMORY_MIN)
        raise ValueError(f"{units.format_size(size)}: the memory of a node must be at least {least}")
    return size


def parse_drive(value: object) -> object:
    """Reads what drives virtual time."""
    return parse_choice(value, "a drive", ("wall", "work", "event"))


def parse_clocks(value: object) -> object:
    """Reads how clocks of guests run."""
    return parse_choice(value, "a way for clocks to run", ("together", "apart"))


def parse_tdf(value: object) -> object:
    """Reads a time dilation factor, or `auto`."""
    if value == "auto":
        return value
    try:
        return units.parse_tdf(value)
    except ValueError as error:
        raise ValueError(f"{error}, or auto") from error


def parse_auto_tdf(value: object) -> Fraction | None:
    """Reads a time dilation factor that may be left to Dilaton."""
    return None if value is None else units.parse_tdf(value)


def parse_seed(value: object) -> int:
    """Reads the seed of random numbers."""
    return units.parse_count(value, "a seed", 0, SEED_MAX)


def parse_target(value: object) -> float:
    """Reads a busy fraction to aim at: more than 0 % and less than 100 %."""
    # Without a percent sign 0 is as wrong as with one.
    target = 0.0 if value == "0" else float(units.parse_ratio(value, "a target"))
    if not 0 < target < 1:
        raise ValueError(f"{units.shown(value)}: a target is a busy fraction, more than 0% and less than 100%")
    return target


def parse_policy(value: object) -> object:
    """Reads how the time dilation factor follows the load."""
    return parse_choice(value, "a policy", ("lateness", "pads15"))


def parse_restart(value: object) -> object:
    """Reads after which ends a process is started again."""
    return parse_choice(value, "when to start it again", ("always", "on-failure"))


def parse_on_violation(value: object) -> object:
    """Reads what follows when fidelity is out of bounds."""
    return parse_choice(value, "what can follow a violation", ("continue", "hold", "fail", "retry"))


def parse_max_speed(value: object) -> Fraction | None:
    """Reads how fast virtual time may run at most."""
    return None if value is None else units.parse_factor(value, "the highest speed")


def parse_kind_name(value: object) -> str | None:
    """Reads the kind of a node: a built-in one, or one that the lab defines."""
    return None if value is None else parse_text(value)


def parse_lab_name(value: object) -> str:
    """Reads the name of a lab, which becomes part of a directory's name."""
    return _parse_file_safe(value, "a lab name")


def lab_name_of(file: str) -> str:
    """The name of a lab that is made of a file or directory: the letters and digits of its name, up to a dot."""
    return re.sub(r"[^A-Za-z0-9]+", "-", file.partition(".")[0])[:64].strip("-") or "lab"


def check_entry_name(name: str, what: str) -> None:
    """Refuses a name of a process or a fault that cannot be part of a file's name."""
    _parse_file_safe(name, what)


def _parse_file_safe(value: object, what: str) -> str:
    text = parse_text(value)
    if not _FILE_SAFE.fullmatch(text):
        raise ValueError(
            f"{text!r}: {what} has 1 to 64 letters, digits, dots, dashes and underscores, "
            "and does not begin with a dot or dash"
        )
    return text


def parse_node_name(value: object) -> str:
    """Reads the name of a node, which is its host name (RFC 1123, one label)."""
    text = parse_text(value)
    if not _HOST_NAME.fullmatch(text):
        raise ValueError(
            f"{text!r}: a node name is a host name: 1 to 63 letters, digits and dashes, no dash first or last"
        )
    if text.lower() == "localhost":
        raise ValueError(f"{text!r}: every node calls itself so; choose another name")
    if re.fullmatch(r"\d+|0[xX][0-9a-fA-F]*", text, re.ASCII):
        raise ValueError(f"{text!r}: programs would take it for an address; write n{text}")
    return text


def split_endpoints(value: object) -> object:
    """Splits the short form of a link, `a -- b` or `a:eth0 -- b:eth1`, and requires two endpoints or more."""
    ends = _SHORT_LINK.split(value.strip()) if isinstance(value, str) else value
    if not isinstance(ends, list | tuple) or len(ends) < 2:
        what = 'a link has two endpoints or more: write ["a:eth0", "b:eth0"] or a -- b'
        raise ValueError(f"{value}: {what}" if isinstance(value, str) else what)
    return tuple(ends)


def parse_endpoint(text: str) -> tuple[str, str]:
    """Reads `node` or `node:interface`; the interface is empty if it is not written."""
    node, colon, interface = text.strip().partition(":")
    if not node or (colon and not interface):
        raise ValueError(f"{text!r}: an endpoint is a node and an interface, such as a:eth0, or a node alone")
    return node, parse_interface(interface) if interface else ""


def parse_interface(value: object) -> str:
    """Reads the name of an interface."""
    text = parse_text(value)
    if not _INTERFACE.fullmatch(text):
        raise ValueError(
            f"{text!r}: an interface name has 1 to 15 letters, digits, dots, dashes and underscores, "
            "and begins with a letter or digit"
        )
    if text in ("lo", "all", "default"):
        raise ValueError(f"{text!r}: the kernel has taken this interface name; choose another, such as eth0")
    return text


def parse_controller(value: object) -> tuple[str, int]:
    """Reads where an OpenFlow controller listens: `tcp:c0:6653`."""
    text = parse_text(value)
    match = re.fullmatch(r"tcp:([^:\s]+)(?::(\d{1,5}))?", text, re.ASCII)
    if match is None or not 0 < int(match[2] or OPENFLOW_PORT) < 65536:
        raise ValueError(f"{text}: a controller is written as tcp:NODE:PORT, such as tcp:c0:6653")
    return match[1], int(match[2] or OPENFLOW_PORT)


def parse_queue_limit(value: object) -> tuple[str, Fraction]:
    """Reads `1000` (packets), `256KB` (bytes), `1bdp` or `50ms` (what the rate sends in that time).

    Returns:
        `packets`, `bytes`, `bdp` or `time` (ns), and how many of them.
    """
    text = units.shown(value)
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return "packets", Fraction(units.parse_count(text, "a queue limit in packets", 1, QUEUE_PACKETS_MAX))
    if match := re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*bdp", text, re.ASCII | re.IGNORECASE):
        factor = Fraction(match[1])
        if not 0 < factor <= BDP_FACTOR_MAX:
            raise ValueError(f"{text}: a queue limit in bdp must be more than 0 and at most {BDP_FACTOR_MAX}")
        return "bdp", factor
    if re.search(r"bi?t?/s|bit|bps", text, re.IGNORECASE):
        raise ValueError(
            f"{text}: a queue limit is not a rate: write packets (1000), a size (256KB), a time (50ms) or bdp (1bdp)"
        )
    if re.fullmatch(r"[+-]?[\d.]+\s*(ns|us|µs|ms|s)", text, re.ASCII):
        time = units.parse_duration(text, "a queue limit", QUEUE_TIME_MAX_NS)
        if time == 0:
            raise ValueError(f"{text}: a queue limit must be more than 0")
        return "time", Fraction(time)
    try:
        size = units.parse_size(text, "a queue limit")
    except units.UnitError as error:
        raise ValueError(
            f"{text}: a queue limit is a number of packets (1000), a size (256KB), a time (50ms) "
            "or bandwidth-delay products (1bdp)"
        ) from error
    if size == 0:
        raise ValueError(f"{text}: a queue limit must be more than 0")
    return "bytes", Fraction(size)


def parse_exec(value: object) -> object:
    """Reads a command: a list of arguments, or text that is split as a shell splits words, without a shell."""
    arguments = value
    if isinstance(value, str):
        try:
            arguments = shlex.split(value)
        except ValueError as error:
            reason = "a quote is not closed" if "quot" in str(error) else "nothing follows the last backslash"
            raise ValueError(f"{value}: {reason}") from error
        for sign in ("|", "||", "&&", "&", ";", ">", ">>", "<", "2>&1"):
            if sign in arguments and arguments[0] != "[":
                raise ValueError(
                    f"{value}: no shell reads this, so {sign} would be an argument: use sh -c '…' or a list"
                )
    if isinstance(arguments, list) and (not arguments or not arguments[0]):
        raise ValueError("no program: write its name and arguments, such as ping -c 3 b")
    if isinstance(arguments, list):
        return arguments
    raise ValueError("must be a command, such as ping -c 3 b, or a list of its arguments")


def parse_names(value: object) -> object:
    """Reads one name, or a list of them."""
    return [value] if isinstance(value, str) else value


def parse_variable(value: object) -> str:
    """Reads the name of an environment variable."""
    text = parse_text(value)
    if not _VARIABLE.fullmatch(text):
        raise ValueError(f"{text!r}: a variable name has letters, digits and underscores, and no digit first")
    return text


def parse_path(value: object) -> str:
    """Reads an absolute path in a node."""
    text = parse_text(value)
    if not text.startswith("/"):
        raise ValueError(f"{text}: must be an absolute path in the node, such as /tmp/{text}")
    return text


def parse_exit(value: object) -> int | None:
    """Reads an exit status, or `any` (None)."""
    if value is None or value == "any":
        return None
    if not re.fullmatch(r"\d{1,3}", str(value), re.ASCII) or isinstance(value, bool) or int(str(value)) > 255:
        raise ValueError(f"{units.shown(value)}: an exit status is a number from 0 to 255, or any")
    return int(str(value))


def parse_sysctl_key(value: object) -> str:
    """Reads the name of a kernel parameter, with dots or slashes, into the form with slashes.

    As in sysctl(8), whichever of the two comes first separates; the other one then stands for a dot in a name.
    """
    text = parse_text(value)
    first = re.search(r"[./]", text)
    key = text.translate(str.maketrans("./", "/.")) if first and first[0] == "." else text
    if not _SYSCTL.fullmatch(key) or any(set(part) == {"."} for part in key.split("/")):
        raise ValueError(f"{text!r}: not a kernel parameter; write it as net.ipv4.tcp_rmem or net/ipv4/tcp_rmem")
    return key


def parse_regex(value: object) -> str:
    """Reads a regular expression that means the same to Python and to the agent's engine, which never backtracks."""
    text = parse_text(value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{text}: not a regular expression: {error}") from error
    for token in _REGEX_TOKEN.findall(text):
        if not _REGEX_KNOWN.fullmatch(token):
            hint = r"; a brace itself is written \{" if token.startswith("{") else ""
            raise ValueError(f"{text}: the agent's regular expressions, which never backtrack, have no {token}{hint}")
    return text
