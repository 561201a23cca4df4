"""What an agent keeps on its machine is gone with it, whatever ends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dilaton.cluster.files import place
from tests.conftest import environment

HOLDING = "import sys, time; from pathlib import Path; from dilaton.cluster.files import place\n"
HOLDING += (
    "with place.own(Path(sys.argv[1])) as made: (made / 'file').touch(); print(made, flush=True); time.sleep(600)"
)


def test_a_place_is_gone_when_its_context_is(tmp_path: Path) -> None:
    with place.own(tmp_path / "machines") as made:
        (made / "file").touch()
        assert place.in_use(tmp_path / "machines") == 1
    assert list((tmp_path / "machines").iterdir()) == []
    assert place.in_use(tmp_path / "nowhere") == 0


def test_the_place_of_an_agent_that_was_killed_is_removed_by_the_next_and_no_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as other:
        assert other.stdout
        theirs = Path(other.stdout.readline().strip())
        with place.own(tmp_path) as ours:
            assert theirs.is_dir()
            assert place.in_use(tmp_path) == 2
            other.kill()
            other.wait()
            assert (theirs / "file").exists()
            with place.own(tmp_path):
                assert not theirs.exists()
                assert ours.is_dir()
