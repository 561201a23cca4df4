"""What `--help` prints of verbs, arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from rich.text import Text

from dilaton.cli.main import app, assembled, main
from tests.conftest import dilaton


def helps(command: Any) -> Iterator[str]:  # typer does not say of which class commands are
    """The texts of the arguments and options of a command and of all below it."""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    for below in getattr(command, "commands", {}).values():
        yield from helps(below)


def test_no_word_of_a_help_text_is_taken_for_markup_and_left_out() -> None:
    texts = list(helps(typer.main.get_command(app)))
    assert len(texts) > 50
    assert [text for text in texts if Text.from_markup(text).plain != text] == []


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("dilaton swe", ["sweep"]),
        ("dilaton run --dri", ["--drive"]),
        ("dilaton kernel u", ["use"]),
        ("dilaton run --drive w", ["wall", "work"]),
    ],
)
def test_a_shell_can_complete_verbs_and_options(
    typed: str, completed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"_DILATON_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.split() == completed


def test_help_of_a_verb_is_that_of_its_option() -> None:
    for words in ((), ("run",), ("kernel", "build")):
        asked = dilaton("help", *words)
        assert (asked.returncode, asked.stdout) == (0, dilaton(*words, "--help").stdout)
    assert dilaton("help", "nosuch").returncode == 2


def shape(command: Any) -> Any:
    """A command's name, parameters, panel and what is below it."""
    parameters = [(parameter.name, parameter.opts, getattr(parameter, "help", None)) for parameter in command.params]
    below = {name: shape(verb) for name, verb in getattr(command, "commands", {}).items()}
    return command.name, command.help, command.rich_help_panel, parameters, below


def test_a_verb_alone_is_what_it_is_among_all() -> None:
    all_of_them = typer.main.get_command(app)
    names = set(all_of_them.commands) - {"help"}
    assert len(names) > 20
    for name in names:
        alone = typer.main.get_command(assembled(name))
        assert list(alone.commands) == [name]
        assert shape(alone.commands[name]) == shape(all_of_them.commands[name])
        assert shape(alone)[:4] == shape(all_of_them)[:4]
