"""What programs say is shown, and commands no terminal."""

from __future__ import annotations

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


def test_control_characters_in_complaints_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    complain(ValueError(HOSTILE))
    assert SHOWN in capsys.readouterr().err
