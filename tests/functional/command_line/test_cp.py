"""`dilaton cp`: files go to a node and come back as they were, to where `docker cp` would put them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.cli.errors import BadInputError, FailedError
from dilaton.cli.steering.cp import copy
from tests.conftest import dilaton, held_run

LAB = "name: copies\nnodes: {a: {}}\nrun: [{on: a, exec: sleep 1000}]\n"


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The directory of a run that holds its clock."""
    with held_run(tmp_path_factory.mktemp("cp"), LAB, "1s") as (_, out):
        yield str(out)


def test_a_tree_goes_to_a_node_and_comes_back_as_it_was(held: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree [1]"
    (tree / "below").mkdir(parents=True)
    (tree / "below" / "large").write_bytes(bytes(range(256)) * 800)
    (tree / "program").write_text("#!/bin/sh\n")
    (tree / "program").chmod(0o750)
    (tree / "link").symlink_to("below/large")
    assert dilaton("cp", held, tree, "a:/tmp/copy&").returncode == 0
    assert dilaton("cp", held, "a:/tmp/copy&", tmp_path / "back").returncode == 0
    back = tmp_path / "back"
    assert sorted(str(path.relative_to(back)) for path in back.rglob("*")) == [
        "below",
        "below/large",
        "link",
        "program",
    ]
    assert (back / "below" / "large").read_bytes() == (tree / "below" / "large").read_bytes()
    assert (back / "link").readlink() == Path("below/large")
    assert (back / "program").stat().st_mode & 0o777 == 0o750


def test_names_are_those_that_docker_gives(held: str, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "into").mkdir()
    copy(held, str(tmp_path / "one"), "a:/tmp")
    copy(held, "a:/tmp/one", str(tmp_path / "into"))
    assert (tmp_path / "into" / "one").read_text() == "1"
    copy(held, "a:/tmp/one", str(tmp_path / "renamed"))
    assert (tmp_path / "renamed").read_text() == "1"
    copy(held, str(tmp_path / "into" / "."), "a:/tmp/contents")
    copy(held, "a:/tmp/contents/one", str(tmp_path / "again"))
    assert (tmp_path / "again").read_text() == "1"


def test_what_cannot_be_copied_is_said(held: str, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    mistakes = {
        ("a:/no/such", str(tmp_path / "x")): (FailedError, "a:/no/such: No such file or directory"),
        (str(tmp_path / "none"), "a:/tmp"): (FailedError, f"{tmp_path / 'none'}: No such file or directory"),
        (str(tmp_path / "one"), "a:/no/such/directory"): (FailedError, "a: tar: /no/such: Cannot open"),
        (str(tmp_path / "one"), "a:/tmp/none/"): (FailedError, "none/: no such directory"),
        ("a:/tmp", "a:/var"): (BadInputError, "one of them is NODE:PATH"),
        (str(tmp_path / "one"), "b:/tmp"): (BadInputError, "b: no such node; there are a"),
    }
    for arguments, (kind, message) in mistakes.items():
        with pytest.raises(kind, match=re.escape(message)):
            copy(held, *arguments)
    assert not (tmp_path / "x").exists()


EVIL = """
mkdir -p /srv/evil; cd /srv/evil
mknod disk b 254 0; mkfifo pipe; cp /bin/true suid; chmod 4755 suid; ln -s /etc/passwd out; echo plain > plain
"""


def test_what_guest_root_has_made_comes_as_plain_files_or_not_at_all(held: str, tmp_path: Path) -> None:
    assert dilaton("shell", held, "a", "sh", "-c", EVIL).returncode == 0
    done = dilaton("cp", held, "a:/srv/evil", tmp_path)
    assert done.returncode == 1
    for line in (
        "a:evil/disk: a device node",
        "a:evil/pipe: a named pipe",
        "a:evil/out: a link that leads out of the copy, to /etc/passwd",
        "a: 3 not copied, 3 copied",
    ):
        assert line in done.stderr
    evil = tmp_path / "evil"
    assert sorted(path.name for path in evil.iterdir()) == ["plain", "suid"]
    assert (evil / "suid").stat().st_mode & 0o7000 == 0
    assert (evil / "plain").read_text() == "plain\n"
