"""What the prompt completes, what it refuses, and that it ends when it is asked to."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from dilaton.cli.errors import FailedError
from dilaton.cli.prompt import prompt as prompts
from dilaton.cli.prompt.prompt import Prompt


def test_nodes_and_what_can_be_done_with_clocks_and_links_are_completed() -> None:
    prompt = object.__new__(Prompt)
    prompt.__dict__["_network"] = SimpleNamespace(nodes=["h1", "h2", "s1"])
    assert prompt.complete_clock("re") == ["release"]
    assert prompt.complete_link("s") == ["s1", "show", "set"]
    assert prompt.completedefault("h") == ["h1", "h2"]


@pytest.mark.parametrize(
    ("line", "hint"), [("pingal", "did you mean pingall"), ("h11 ls", "did you mean h1"), ("xyz", "help lists both")]
)
def test_what_is_neither_a_command_nor_a_node_is_told_with_what_may_be_meant(line: str, hint: str) -> None:
    prompt = object.__new__(Prompt)
    prompt.__dict__["_network"] = SimpleNamespace(nodes=["h1", "s1"])
    with pytest.raises(ValueError, match=f"neither a command nor a node; {hint}"):
        prompt.default(line)
    assert "EOF" not in prompt.completenames("")


@pytest.mark.parametrize(
    ("line", "has_tree", "said"),
    [
        ("h1 wrk -c 3", True, "wrk: not on this machine; "),
        ("h1 wrk -c 3", False, ""),
        ("h1 sh -c none", True, ""),
        ("h1 none", True, ""),
    ],
)
def test_of_a_program_that_this_machine_lacks_the_package_is_told(
    line: str, has_tree: bool, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prompts, "executes", lambda program, _: program != "wrk")
    prompt = object.__new__(Prompt)
    prompt.__dict__ |= {
        "_network": SimpleNamespace(nodes=["h1"], has_tree_of_host=lambda _: has_tree),
        "_run": SimpleNamespace(clock=SimpleNamespace(held=False)),
        "_reminded": False,
        "_execute": lambda *_: 127,
    }
    prompt.default(line)
    told = capsys.readouterr().err
    assert (f"{said}{prompts.fix(['wrk'])}" in told) if said else not told


def test_a_signal_that_asks_for_an_end_is_heard_also_where_the_run_ends_at_that_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ends(*arguments: Any) -> int:
        arguments[-1].append(signal.SIGTERM)
        raise FailedError("the run has ended")

    monkeypatch.setattr(prompts, "run_here", ends)
    prompt = object.__new__(Prompt)
    prompt.__dict__ |= {"_run": SimpleNamespace(path=Path("run")), "_has_terminal": False}
    with pytest.raises(SystemExit, match="143"):
        prompt._execute("a", "true")


def test_xterm_opens_a_window_for_each_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[list[str]] = []
    monkeypatch.setattr(prompts.subprocess, "Popen", lambda argv, **_: opened.append(argv))
    prompt = object.__new__(Prompt)
    prompt.__dict__ |= {"_run": SimpleNamespace(path=tmp_path), "_network": SimpleNamespace(nodes=["h1", "h2"])}
    prompt.do_xterm("h1 h2")
    assert [argv[:4] + argv[-3:] for argv in opened] == [
        ["x-terminal-emulator", "-T", node, "-e", "shell", str(tmp_path), node] for node in ("h1", "h2")
    ]
    with pytest.raises(ValueError, match="h3: no such node"):
        prompt.do_xterm("h3")


def test_xterm_without_a_terminal_emulator_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    prompt = object.__new__(Prompt)
    prompt.__dict__ |= {"_run": SimpleNamespace(path=tmp_path), "_network": SimpleNamespace(nodes=["h1"])}
    with pytest.raises(ValueError, match="x-terminal-emulator: No such file"):
        prompt.do_xterm("h1")


def test_iperf_in_a_lab_without_hosts_says_what_it_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prompt, "_want_time", lambda _: None)
    prompt = object.__new__(Prompt)
    prompt.__dict__["_network"] = SimpleNamespace(nodes=["s1"], hosts=[])
    with pytest.raises(ValueError, match="two nodes are wanted, such as h1 h2"):
        prompt.do_iperf("")


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> Prompt:
    """A prompt in a lab with one node, whose commands have the exit status that they say."""
    monkeypatch.setattr(prompts, "run_here", lambda *arguments: int(arguments[2][-1]))
    prompt = object.__new__(Prompt)
    run = SimpleNamespace(path=Path("run"), clock=SimpleNamespace(held=False))
    prompt.__dict__ |= {"_network": SimpleNamespace(nodes=["a"]), "_run": run, "_reminded": False}
    prompt.__dict__ |= {"_has_terminal": False, "status": 0, "_sources": []}
    return prompt


def test_a_file_that_says_exit_leaves_the_prompt_with_the_status_of_what_was_before(
    prompt: Prompt, tmp_path: Path
) -> None:
    file = tmp_path / "commands"
    file.write_text("a 3\nexit\na 4\n")
    assert prompt.onecmd(f"source {file}")
    assert prompt.status == 3
    file.write_text("a 3\n\na 4\n")
    assert not prompt.onecmd(f"source {file}")
    assert prompt.onecmd("exit")
    assert prompt.status == 4


def test_a_file_that_is_its_own_source_is_told_so_and_goes_on(
    prompt: Prompt, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "commands"
    file.write_text(f"source {file}\nsource {file}\na 5\n")
    for _ in range(2):
        assert not prompt.onecmd(f"source {file}")
        assert prompt.status == 5
    assert capsys.readouterr().err.count("says source of itself") == 4


def test_a_fault_of_the_host_is_told_and_the_prompt_goes_on(
    prompt: Prompt, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prompts, "run_here", Mock(side_effect=OSError(12, "Cannot allocate memory")))
    assert not prompt.onecmd("a 0")
    assert (prompt.status, capsys.readouterr().err) == (1, "dilaton: [Errno 12] Cannot allocate memory\n")
    monkeypatch.setattr(prompts, "run_here", Mock(side_effect=BrokenPipeError))
    with pytest.raises(BrokenPipeError):
        prompt.onecmd("a 0")
