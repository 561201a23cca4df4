"""Writes manual pages, in target/man/man1: a page for `dilaton`, and one for each of its verbs (`./dev docs`, `./dev
wheel`).
 They are made of the command line's own definitions, as `--help` is, so that neither says what the other does not.
There are libraries for that, but they speak to click, and typer has a click of its own.

The language of the pages is man(7). What a verb says of itself is text: whatever roff would take for an order of its
own, a backslash, or a full stop or an apostrophe at the begin of a line, is escaped.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from dilaton import __version__
from dilaton.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "target/man/man1"


def pages() -> dict[str, str]:
    """All pages, by the names of their files."""
    return {f"{'-'.join(words)}.1": page(words, command) for words, command in commands()}


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """`dilaton` and all its verbs, those with verbs of their own before these; each with the words that call it."""
    waiting: list[tuple[tuple[str, ...], Any]] = [(("dilaton",), typer.main.get_command(app))]
    while waiting:
        words, command = waiting.pop(0)
        yield words, command
        waiting += [((*words, name), verb) for name, verb in verbs(command)]


def verbs(command: Any) -> list[tuple[str, Any]]:
    """The verbs below a command that people are to know."""
    return [(name, verb) for name, verb in getattr(command, "commands", {}).items() if not verb.hidden]


def page(words: tuple[str, ...], command: Any) -> str:
    """The page of a command, in man(7)."""
    name = "-".join(words)
    context = command.make_context(words[-1], [], resilient_parsing=True)
    summary, _, rest = (command.help or "").partition("\n\n")
    lines = [
        f'.TH {quoted(name.upper())} 1 "" {quoted(f"dilaton {__version__}")} "Dilaton"',
        ".SH NAME",
        f"{text(name)} \\- {text(summary).rstrip('.')}",
        ".SH SYNOPSIS",
        f".B {text(' '.join(words))}",
        text(" ".join(command.collect_usage_pieces(context))),
    ]
    if rest.strip():
        lines += [".SH DESCRIPTION", text(rest)]
    for heading, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        records = [one.get_help_record(context) for one in command.get_params(context) if one.param_type_name == kind]
        lines += entries(heading, [record for record in records if record])
    below: dict[str, list[tuple[str, str]]] = {}
    for verb, one in verbs(command):
        panel = getattr(one, "rich_help_panel", None)
        heading = panel.upper() if isinstance(panel, str) and panel else "VERBS"
        below.setdefault(heading, []).append((verb, (one.help or "").partition("\n\n")[0]))
    for heading, listed in below.items():
        lines += entries(heading, listed)
    if command.epilog:
        lines += [".SH NOTES", text(command.epilog)]
    lines += [".SH SEE ALSO", related(words, command)]
    return "\n".join(lines) + "\n"


def entries(heading: str, listed: list[tuple[str, str]]) -> list[str]:
    """A section of terms and what they mean; none where there are none."""
    if not listed:
        return []
    return [
        f".SH {quoted(heading)}",
        *(line for term, what in listed for line in (".TP", f".B {text(term)}", text(what))),
    ]


def related(words: tuple[str, ...], command: Any) -> str:
    """The pages around one: what it is a verb of, and its own verbs."""
    around = ["-".join(words[:-1])] if len(words) > 1 else []
    around += ["-".join((*words, name)) for name, _ in verbs(command)]
    return ",\n".join(f"\\fB{text(name)}\\fR(1)" for name in around) or text("README.md and docs/ of Dilaton")


def text(words: str) -> str:
    """Words that roff takes for nothing but words; paragraphs stay apart."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-")
    # groff(1) by itself reads no more than Latin letters.
    escaped = re.sub(r"[^\x00-\x7f]", lambda match: f"\\[u{ord(match[0]):04X}]", escaped)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", escaped)]
    return "\n.PP\n".join(re.sub(r"^(?=[.'])", "\\\\&", part) for part in paragraphs if part)


def quoted(words: str) -> str:
    """Words as one argument of a request."""
    return '"' + text(words).replace('"', "\\(dq") + '"'


def write(directory: Path) -> None:
    """Writes all pages, in place of what is there."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name, words in pages().items():
        (directory / name).write_text(words)


if __name__ == "__main__":
    write(PAGES)
    print(f"{PAGES}: {len(list(PAGES.iterdir()))} pages", file=sys.stderr)
