"""A cluster of one's own: what it takes to have a part in one, and that a failed start leaves nothing behind."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dilaton.cluster import keeper, own
from dilaton.cluster.own import Part
from dilaton.host.errors import GuestError

TOKEN = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has nothing yet, and no Ray."""
    empty = tmp_path / "ray"
    (empty / "ray").mkdir(parents=True)
    (empty / "ray/__init__.py").write_text("raise ImportError('there is no Ray')\n")
    monkeypatch.setenv("PYTHONPATH", str(empty))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return tmp_path


@pytest.mark.parametrize("address", ["", "ws1", "192.0.2", "192.0.2.1:6379", "--head"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        own.start(address, 1)
    assert not own.directory().exists()


@pytest.mark.parametrize("token", ["", "x", TOKEN[1:], TOKEN.upper(), TOKEN + "0"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="no token of a cluster"):
        own.join("192.0.2.1:6379", token, "192.0.2.2", 1)
    assert not own.directory().exists()


def test_a_start_that_fails_says_where_to_look_and_holds_nothing() -> None:
    with pytest.raises(GuestError, match=r"Ray does not start: it did not come up; .*keeper\.log says why"):
        own.start("127.0.0.1", 1)
    assert "there is no Ray" in (own.directory() / "keeper.log").read_text()
    token = own.directory() / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert own.kept() is None and own.variables() == {}
    assert not own.files(token.read_text()).exists()
    assert not own.stop(), "nothing was kept"
    assert not own.directory().exists()


def test_the_token_is_in_no_argument_and_the_head_is_the_first_machine_of_a_start() -> None:
    part = Part("192.0.2.1:7000", "192.0.2.1", is_head=True, machines=2)
    first, second = (keeper.command(part, number, Path("/x")) for number in range(2))
    assert "--head" in first and "--port=7000" in first and "--temp-dir=/x" in first
    assert "--head" not in second and "--address=192.0.2.1:7000" in second
    assert "--address=192.0.2.1:7000" in keeper.command(
        Part(part.head, "192.0.2.2", is_head=False, machines=1), 0, Path()
    )


def test_all_that_is_below_a_keeper_ends_with_it_also_what_was_left_by_its_parent(tmp_path: Path) -> None:
    program = f"""
import ctypes, os, subprocess, sys
from dilaton.cluster import keeper
ctypes.CDLL(None).prctl(keeper.PR_SET_CHILD_SUBREAPER, 1)
subprocess.run(["sh", "-c", "setsid sleep 1000 & echo $! > {tmp_path}/left"], check=True)
print(len(keeper.below(os.getpid())))
keeper.end_all()
print(len(keeper.below(os.getpid())))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(Path(own.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "0"]
    assert not Path(f"/proc/{(tmp_path / 'left').read_text().strip()}").exists()
