"""Files that a lab names: distribution tables of netem and delivery traces of mahimahi.

They are read with the lab, so that whatever is wrong with them is told with its line, and become part of the plan.
"""

from __future__ import annotations

from pathlib import Path

TABLE_ENTRIES_MAX = 16384
"""What netem takes (NETEM_DIST_MAX)."""
TABLE_VALUE_MAX = 2**15
TRACE_LINES_MAX = 4_000_000
TRACE_MS_MAX = 4 * 3600 * 1000
_BYTES_MAX = 64 * 2**20


def read_table(name: str, directory: str) -> tuple[int, ...]:
    """Reads a distribution table as tc does: whole numbers between spaces and lines, `#` begins a comment.

    Args:
        name: Path of the file, from `directory` unless absolute.
        directory: Where the lab is.

    Returns:
        The table in the file's order: quantiles in 1/8192 of the jitter.

    Raises:
        ValueError: the file cannot be read, or is no such table.
    """
    values = []
    for number, line in enumerate(_text(name, directory).splitlines(), 1):
        for word in line.partition("#")[0].split():
            values.append(_whole(name, number, word, -TABLE_VALUE_MAX, TABLE_VALUE_MAX - 1))
    if not values:
        raise ValueError(f"{name}: an empty table; a table is quantiles in 1/8192 of the jitter, as tc's normal.dist")
    if len(values) > TABLE_ENTRIES_MAX:
        raise ValueError(f"{name}: {len(values)} values; netem takes at most {TABLE_ENTRIES_MAX}")
    return tuple(values)


def read_trace(name: str, directory: str) -> tuple[int, ...]:
    """Reads a delivery trace as mm-link(1) does: a line is the millisecond of one opportunity to send 1500 bytes.

    Args and errors as for `read_table`.

    Returns:
        The milliseconds, ascending; the last one is the period after which the trace begins anew.
    """
    found: list[int] = []
    for number, line in enumerate(_text(name, directory).splitlines(), 1):
        if not line.strip():
            continue
        value = _whole(name, number, line.strip(), 0, TRACE_MS_MAX)
        if found and value < found[-1]:
            raise ValueError(f"{name}:{number}: {value} comes after {found[-1]}: a trace is sorted")
        found.append(value)
        if len(found) > TRACE_LINES_MAX:
            raise ValueError(f"{name}: more than {TRACE_LINES_MAX} opportunities")
    if not found:
        raise ValueError(f"{name}: an empty trace; each line is the millisecond of one 1500-byte opportunity")
    if found[-1] == 0:
        raise ValueError(f"{name}: the last line is the trace's length in milliseconds, and must be more than 0")
    return tuple(found)


def _text(name: str, directory: str) -> str:
    path = Path(directory, name)
    try:
        with path.open("rb") as stream:
            raw = stream.read(_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"{name}: cannot be read: {error.strerror} (looked at {path})") from error
    if len(raw) > _BYTES_MAX:
        raise ValueError(f"{name}: larger than {_BYTES_MAX} bytes")
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: not a text of numbers") from error


def _whole(name: str, number: int, word: str, minimum: int, maximum: int) -> int:
    try:
        value = int(word)
    except ValueError:
        raise ValueError(f"{name}:{number}: {word}: not a whole number") from None
    if not minimum <= value <= maximum:
        raise ValueError(f"{name}:{number}: {value}: must be from {minimum} to {maximum}")
    return value
