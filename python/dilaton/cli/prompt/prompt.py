"""The `lab>` prompt: a run that goes on, by hand, with the words of Mininet's prompt.

A line that begins with a node's name is a command for that node. What it executes gets this terminal, if there is one.
As in a shell, a command that ends with `&` goes on by itself.
"""

from __future__ import annotations

import cmd
import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from dilaton.cli.errors import BAD_INPUT, FAILED, BadInputError, FailedError, complain, refusing
from dilaton.cli.prompt.network import Network
from dilaton.cli.steering.attach import signalled
from dilaton.cli.steering.control import steer
from dilaton.cli.steering.fault import steer_faults
from dilaton.cli.steering.link import ACTIONS as LINK_ACTIONS
from dilaton.cli.steering.link import steer_link
from dilaton.cli.steering.shell import run_here
from dilaton.host.here.doctor.programs import PACKAGES, executes, fix
from dilaton.host.processes import OURSELVES
from dilaton.lab.text.syntax import did_you_mean
from dilaton.plan.model import Plan
from dilaton.plan.schedule import PATH
from dilaton.run.control.actions import CLOCK_ACTIONS
from dilaton.run.control.answers import CLOCK_PACE
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import take_over
from dilaton.run.control.session_client import reached
from dilaton.run.control.terminal_client import SHELL
from dilaton.run.files.outputs import read_output
from dilaton.service.plain import LiveRun, attach

OUTPUT = "/tmp/background.log"  # noqa: S108 - of the node
"""Where in a node that goes which a command in the background prints."""

TERMINAL = "x-terminal-emulator"

NOT_FOUND = 127
"""The exit status of a shell that finds no such program."""

IN_BACKGROUND = 'setsid -f sh -c "$1" < /dev/null >> "$2" 2>&1'

IPERF_SERVER = "iperf3 -s -1 -D && until ss -Hltn sport = :5201 | grep -q .; do sleep 0.01; done"
"""A server for one client, which listens when this is done."""


def converse(run: LiveRun) -> int:
    """Reads commands until `exit` or the end of the input; returns the status of the last one."""
    has_terminal = os.isatty(0) and os.isatty(1)
    with _paced(run) if has_terminal else contextlib.nullcontext():
        prompt = Prompt(run, sys.stdin if has_terminal else _script(), has_terminal)
        while True:
            try:
                prompt.cmdloop()
                return prompt.status
            except KeyboardInterrupt:
                print()


@refusing(ControlError)
def attach_prompt(run: str) -> int:
    """The prompt of a run that goes on, and will; returns the exit status."""
    with attach(run) as found:
        return converse(found)


def _script() -> TextIO:
    """Our input, from now on for commands alone: what they execute has none, and so cannot swallow the rest."""
    commands = os.fdopen(os.dup(0), errors="surrogateescape")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return commands


@contextlib.contextmanager
def _paced(run: LiveRun) -> Iterator[None]:
    """Keeps virtual time from running faster than who types."""
    connection, _ = take_over(run.path, CLOCK_PACE)
    with connection:
        yield


class Prompt(cmd.Cmd):
    """The commands; each method that begins with `do_` is one, its text what `help` says."""

    doc_header = "Commands (help COMMAND says more); and NODE COMMAND, such as: h1 ping -c 3 h2"

    def __init__(self, run: LiveRun, commands: TextIO, has_terminal: bool) -> None:
        """The prompt of a run, which reads `commands`, at a terminal or from a script."""
        super().__init__(stdin=commands)
        self._run = run
        self._has_terminal = has_terminal
        self._network = Network(Plan.model_validate_json(read_output(run.path / "plan.json")))
        self.prompt = "lab> " if has_terminal else ""
        if has_terminal:
            self.intro = self._network.greeting()
        self.use_rawinput = has_terminal
        self.status = self._before = 0
        """The exit status of the last command, and of the one before it."""
        self._reminded = False
        self._sources: list[Path] = []
        """Files whose lines are being done, each from within the one before it."""

    def onecmd(self, line: str) -> bool:
        """Does what a line says; tells whether it was the last one."""
        self._before, self.status = self.status, 0
        try:
            return bool(super().onecmd(line))
        except (BadInputError, ControlError, ValueError) as error:
            complain(error)
            self.status = BAD_INPUT
            return False
        except BrokenPipeError:
            raise  # nobody reads us any more
        except (FailedError, OSError) as error:
            complain(error)
            self.status = FAILED
            return False

    def emptyline(self) -> bool:
        """An empty line does nothing."""
        return False

    def default(self, line: str) -> None:
        """NODE COMMAND."""
        node, _, command = line.partition(" ")
        if node not in self._network.nodes:
            hint = did_you_mean(node, self.completenames("")) or "; help lists both"
            raise ValueError(f"{node}: neither a command nor a node{hint}")
        self._remind_of_hold()
        self.status = self._execute(node, command.strip())
        if self.status == NOT_FOUND:
            self._tell_of_package(node, command)

    def _tell_of_package(self, node: str, command: str) -> None:
        """Says how a node gets a program that is nowhere on this machine, whose programs it has."""
        program = command.split()[0]
        if program in PACKAGES and self._network.has_tree_of_host(node) and not executes(program, PATH):
            complain(f"{program}: not on this machine; {fix([program])}")

    def _remind_of_hold(self) -> None:
        """Says once in a hold that it goes on: a ping, for instance, would seem to hang."""
        held = self._run.clock.held
        if held and not self._reminded:
            complain("the clock is held: what waits for time waits until clock release")
        self._reminded = held

    def get_names(self) -> list[str]:
        """What `help` lists: nobody types the name of Ctrl-D."""
        return [name for name in super().get_names() if name != "do_EOF"]

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        """Commands and nodes that begin with `text`."""
        return [*super().completenames(text, *ignored), *self._nodes(text)]

    def completedefault(self, *ignored: Any) -> list[str]:
        """Nodes that begin with what was typed last."""
        return self._nodes(str(ignored[0]))

    def complete_clock(self, text: str, *_: Any) -> list[str]:
        """What can be done with a clock."""
        return [action for action in CLOCK_ACTIONS if action.startswith(text)]

    def complete_link(self, text: str, *_: Any) -> list[str]:
        """Nodes, and what can be done with the links between them."""
        return [*self._nodes(text), *(action for action in LINK_ACTIONS if action.startswith(text))]

    def _nodes(self, text: str) -> list[str]:
        return [name for name in self._network.nodes if name.startswith(text)]

    def _execute(self, node: str, command: str) -> int:
        argv, has_terminal = ["sh", "-c", command] if command else SHELL, self._has_terminal
        if command.endswith("&"):
            argv = ["sh", "-c", IN_BACKGROUND, "sh", command.removesuffix("&"), OUTPUT]
            has_terminal = False
        heard: list[int] = []
        try:
            return run_here(reached(self._run.path), node, argv, has_terminal, heard)
        finally:
            # Also where the run has ended at the same moment.
            if heard:
                raise SystemExit(signalled(heard[0]))

    def do_nodes(self, _: str) -> None:
        """The names of all nodes."""
        print(" ".join(self._network.nodes))

    def do_net(self, _: str) -> None:
        """What each interface is connected with."""
        print("\n".join(self._network.connections()))

    def do_links(self, _: str) -> None:
        """All links, and what they do to packets."""
        self.status = steer_link(str(self._run.path), None, "show", [], None)

    def do_dump(self, _: str) -> None:
        """All nodes with their addresses."""
        print("\n".join(self._network.addresses()))

    def do_pingall(self, _: str) -> None:
        """Each host pings each other one, once."""
        self._pingall(self._network.hosts)

    def do_pingpair(self, _: str) -> None:
        """The first two hosts ping each other."""
        self._pingall(self._network.hosts[:2])

    def _pingall(self, hosts: Sequence[str]) -> None:
        self._want_time()
        sent = lost = 0
        for host in hosts:
            others = [other for other in hosts if other != host]
            print(f"{host} ->", end="", flush=True)
            for other in others:
                reached = self._run.execute(host, ["ping", "-c", "1", "-W", "1", other]).returncode == 0
                print(f" {other if reached else 'X'}", end="", flush=True)
                lost += not reached
            sent += len(others)
            print()
        share = f"{100 * lost / sent:.0f}% dropped" if sent else "nobody to ping"
        print(f"{share} ({sent - lost}/{sent} received)")
        self.status = int(lost > 0)

    def do_iperf(self, line: str) -> None:
        """iperf [A B]: TCP from A to B for five seconds, by default from the first host to the last."""
        self._want_time()
        hosts = line.split() or [*self._network.hosts[:1], *self._network.hosts[-1:]]
        client, server = self._pair(hosts)
        begun = self._run.execute(server, IPERF_SERVER)
        if begun.returncode:
            raise ValueError(f"{server}: {begun.stderr.strip()}")
        self.status = self._execute(client, f"iperf3 -c {server} -t 5 -f m")

    def _pair(self, names: Sequence[str]) -> tuple[str, str]:
        self._named(names)
        if len(names) != 2:
            raise ValueError("two nodes are wanted, such as h1 h2")
        return names[0], names[1]

    def _named(self, names: Sequence[str]) -> Sequence[str]:
        for name in names:
            if name not in self._network.nodes:
                raise ValueError(f"{name}: no such node; there are {' '.join(self._network.nodes)}")
        return names

    def do_link(self, line: str) -> None:
        """link A B up|down|show, or link A B set FIELD=VALUE...: the links between two nodes."""
        parts = shlex.split(line)
        between = self._pair(parts[:2])
        action, fields = (parts[2] if parts[2:] else "show"), parts[3:]
        for link in self._network.between(*between):
            self.status = steer_link(str(self._run.path), link, action, fields, None)

    def do_fault(self, line: str) -> None:
        """fault pause=h1 for=3s, fault list, fault undo [NAME]: what is broken on purpose, in the words of a lab."""
        self.status = steer_faults(str(self._run.path), [line] if line.startswith("{") else shlex.split(line))

    def do_clock(self, line: str) -> None:
        """clock [hold | release | until 5s | step | tdf 10]: the clock of the run."""
        action, *values = line.split() or ["show"]
        self.status = steer(str(self._run.path), action, values[0] if values else None)

    def do_xterm(self, line: str) -> None:
        """xterm NODE...: opens a window with a shell in each of these nodes."""
        shell = [*OURSELVES, "shell", str(self._run.path.absolute())]
        for node in self._named(line.split()):
            try:
                # The options are those of every x-terminal-emulator (Debian Policy 11.8.3).
                subprocess.Popen([TERMINAL, "-T", node, "-e", *shell, node], start_new_session=True)
            except OSError as error:
                raise ValueError(f"{TERMINAL}: {error.strerror}; {fix([TERMINAL])}") from error

    def do_sh(self, line: str) -> None:
        """Execute a command of this machine's shell, outside of the lab."""
        self.status = subprocess.run(["sh", "-c", line], check=False).returncode

    def do_py(self, line: str) -> None:
        """py EXPRESSION: of Python; `run` is this run, as of `dilaton.attach`: py run.execute('h1', 'date').stdout"""
        try:
            value = eval(line, {"run": self._run})
        except Exception as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
        if value is not None:
            print(value)

    def do_source(self, line: str) -> bool:
        """source FILE: do what the lines of a file of this machine say, up to its end or `exit`."""
        file = Path(line.strip()).resolve()
        try:
            commands = file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ValueError(f"{line}: {error.strerror}") from error
        if file in self._sources:
            raise ValueError(f"{line}: says source of itself, which would never end")
        self._sources.append(file)
        try:
            return any(self.onecmd(command.strip()) for command in commands)
        finally:
            self._sources.pop()

    def do_exit(self, _: str) -> bool:
        """Leave the prompt; a lab that was brought up with it ends."""
        # As of a shell: what ends it has the status of what was before.
        self.status = self._before
        return True

    do_quit: Callable[[Prompt, str], bool] = do_exit

    def do_suspend(self, _: str) -> bool:
        """Put the lab away, and leave the prompt: its memory goes to disk, its cores are free, until dilaton resume."""
        self._run.suspend()
        print(
            f"suspended; dilaton resume {self._run.path} lets it go on, and dilaton cli {self._run.path} is its prompt"
        )
        return True

    def do_EOF(self, _: str) -> bool:
        """The same, as Ctrl-D."""
        if self._has_terminal:
            print()
        return self.do_exit("")

    def _want_time(self) -> None:
        if self._run.clock.held:
            raise ValueError("the clock is held, and that takes time: clock release")
