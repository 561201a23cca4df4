"""`dilaton`: its verbs, by what they are for."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException
from typer.main import get_command_name
from typer.models import CommandInfo, TyperInfo

from dilaton import __version__
from dilaton.cli.errors import BAD_INPUT, FAILED, HOST_LACKS, BadInputError, FailedError, complain, spelled, usage
from dilaton.cli.output import finish, prepare
from dilaton.cli.verbs import labs, machine, results, runs, serving
from dilaton.lab.errors import LabError

COMPLETING = "_DILATON_COMPLETE"
"""What a shell sets in the environment that asks how a command line could go on."""

PANELS = {
    "Labs": labs.app,
    "Runs in progress": runs.app,
    "Results": results.app,
    "This machine": machine.app,
    "Other people and programs": serving.app,
}


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dilaton {__version__}")
        raise typer.Exit


AT_A_SERVER = (
    *("run", "up", "ps", "down", "stop", "clock", "suspend", "resume", "top", "link", "fault"),
    *("shell", "cp", "capture", "forward", "vpn", "save", "logs", "report", "compare", "sweep"),
    *("template", "saved", "image"),
)
"""Verbs that ask a server with `--server`."""


def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=f"Have a server do it ({', '.join(AT_A_SERVER)}), with the token in DILATON_TOKEN.",
        ),
    ] = None,
) -> None:
    if server is not None and context.invoked_subcommand not in AT_A_SERVER:
        raise BadInputError(f"--server: {context.invoked_subcommand}: only {', '.join(AT_A_SERVER)} ask a server")
    context.obj = server


def show_help(
    verb: Annotated[list[str] | None, typer.Argument(metavar="VERB", help="Such as run, or kernel build.")] = None,
) -> None:
    """Show the help of a verb, as VERB --help does."""
    app([*(verb or []), "--help"], prog_name="dilaton", standalone_mode=False)


def assembled(only: str | None = None) -> typer.Typer:
    """The command line.

    Args:
        only: the one verb, or group of verbs, that it is to know; None: all of them. What is made of a verb's
            parameters takes a millisecond, and there are forty of them.
    """
    made = typer.Typer(
        name="dilaton",
        help="Real Linux kernels and programs on networks that you do not have, in virtual time.",
        epilog="To begin: dilaton new first, then dilaton run first. Exit status: 0 all well, 1 a check or process "
        "failed, 2 bad input, 3 this machine lacks something, 130 interrupted.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_options)
    for panel, verbs in PANELS.items():
        for verb in verbs.registered_commands:
            verb.rich_help_panel = panel
            if only in {None, name_of(verb)}:
                made.registered_commands.append(verb)
        for group in verbs.registered_groups:
            group.rich_help_panel = panel
            if only in {None, name_of(group)}:
                made.registered_groups.append(group)
    if only is None:
        made.command("help")(show_help)
    return made


def name_of(entry: CommandInfo | TyperInfo) -> str | None:
    """The name of a verb or group as it is called, which typer makes of what was given last, or of a function's."""
    if isinstance(entry, CommandInfo):
        return entry.name or (None if entry.callback is None else get_command_name(entry.callback.__name__))
    below = entry.typer_instance
    given = [entry.name, *([] if below is None else [below.info.name])]
    return next((name for name in given if isinstance(name, str)), None)


app = assembled()


def _asked() -> str | None:
    """The verb on the command line, if it is one that the others need not be known for."""
    if COMPLETING in os.environ:
        return None
    first = next(iter(sys.argv[1:]), "")
    known = {*map(name_of, app.registered_commands), *map(name_of, app.registered_groups)}
    return first if first in known - {"help"} else None


def main() -> None:
    """Runs the command line. Exit status: 0 well, 1 a check or process failed, 2 bad input, 3 the host lacks something,
    130 interrupted."""
    prepare()
    status = FAILED
    try:
        try:
            status = _status()
        finally:
            finish()
    except OSError as error:
        # Output that cannot be written, as on a full disk, or another fault of the host that no verb has foreseen.
        complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or error)
        status = status or FAILED
    sys.exit(status)


def _status() -> int:
    """What the command line asks for, done: the exit status."""
    from dilaton.host.errors import HostLacksError

    try:
        status: int = assembled(_asked())(prog_name="dilaton", standalone_mode=False) or 0
        return status
    except TyperException as error:
        complain(usage(error))
        return BAD_INPUT
    except (LabError, BadInputError) as error:
        complain(error)
        return BAD_INPUT
    except _refusals() as error:
        complain(spelled(error))
        return BAD_INPUT
    except FailedError as error:
        complain(error)
        return FAILED
    except HostLacksError as error:
        complain(error)
        return HOST_LACKS
    except MemoryError:
        complain("memory: there is not enough for this; close other programs, or raise the limit (ulimit -v)")
        return HOST_LACKS


def _refusals() -> type[Exception]:
    """What says that a request is refused; looked for when something is wrong, so that nothing else waits for it."""
    from dilaton.service.errors import RequestError

    return RequestError
