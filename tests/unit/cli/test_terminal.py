"""What programs say is shown, and commands no terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from rich.table import Table
from rich.text import Text

from dilaton.cli.errors import complain
from dilaton.cli.terminal import Output

HOSTILE = "a\x1b]0;title\x07\x9b2Jb"
SHOWN = r"a\x1b]0;title\x07\x9b2Jb"


def test_control_characters_in_texts_and_tables_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table()
    table.add_row(Text(HOSTILE))
    console = Output()
    console.print(Text(HOSTILE))
    console.print(HOSTILE)
    console.print(table)
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\x9b" not in said
    assert said.count("]0;t") == said.count(r"a\x1b]0;t") == 3


def test_a_line_without_a_terminal_is_one_line_however_long(capsys: pytest.CaptureFixture[str]) -> None:
    console = Output(stderr=True)
    console.print_line(Text(f"a\x1b[2Jb {'word ' * 100}end", style="bold"))
    assert capsys.readouterr().err == f"a\\x1b[2Jb {'word ' * 100}end\n"


def test_a_line_that_nobody_reads_any_more_is_no_trouble() -> None:
    # Where a pipe's reader has left, writing fails; what is printed from then on goes nowhere.
    code = "import os; from rich.text import Text; from dilaton.cli.terminal import Output; output = Output()"
    code += "; [output.print_line(Text('event')) for _ in range(3)]; os._exit(0)"
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=nobody, stderr=subprocess.PIPE, text=True, check=True
        )
    assert done.stderr == ""


def test_control_characters_in_complaints_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    complain(ValueError(HOSTILE))
    assert SHOWN in capsys.readouterr().err
