"""A disk that gets full under the store: an error that says so, and everything that was there stays as it was.

The disk is a small file system in memory, in a namespace of the test's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.files import find_program
from tests.conftest import ROOT, environment
from tests.images import layer, layout, needs_programs

pytestmark = [needs_programs, pytest.mark.skipif(find_program("bwrap") is None, reason="no bubblewrap")]

DISK_BYTES = 4 << 20
LARGE_BYTES = 16 << 20

SCRIPT = """
import json, os, subprocess, sys
from pathlib import Path
small, *attempts = json.loads(sys.argv[1])
top = Path(os.environ["XDG_DATA_HOME"])

def ran(words):
    done = subprocess.run([sys.executable, "-m", "dilaton", *words], capture_output=True, text=True)
    return [done.returncode, done.stderr]

def there():
    paths = [path for path in top.rglob("*") if path.is_file() and "lock" not in path.name]
    return {str(path.relative_to(top)): path.read_bytes().hex() for path in paths}

assert ran(small)[0] == 0
before, told = there(), []
for words in attempts:
    status, said = ran(words)
    cleaned = ran(["image", "gc"])
    told.append([status, said, cleaned, there() == before, ran(["image", "inspect", "small"])[0]])
print(json.dumps(told))
"""


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, str]:
    """What does not fit, in every shape."""
    large = os.urandom(LARGE_BYTES)
    (tmp_path / "small.tar").write_bytes(layer(("a", b"small")))
    (tmp_path / "large.tar").write_bytes(layer(("a", large)))
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/large").write_bytes(large)
    (tmp_path / "lab/lab.yaml").write_text("name: x\nnodes: {a: {}}\n")
    (tmp_path / "recipe.yaml").write_text(f"host: [{tmp_path}/lab/large]\n")
    return {
        "small": str(tmp_path / "small.tar"),
        "tar": str(tmp_path / "large.tar"),
        "layout": layout(tmp_path / "oci", [layer(("a", large))]),
        "recipe": str(tmp_path / "recipe.yaml"),
        "lab": str(tmp_path / "lab"),
    }


def test_a_full_disk_is_told_and_the_store_is_as_before(sources: dict[str, str], tmp_path: Path) -> None:
    size = ["--max-size", "1GB"]
    attempts = {
        "tar": ["image", "import", sources["tar"], "large", *size],
        "layout": ["image", "import", sources["layout"], "large", *size],
        "recipe": ["image", "build", sources["recipe"], "large", *size],
        "template": ["template", "save", sources["lab"], "large"],
    }
    disk = tmp_path / "disk"
    disk.mkdir()
    given = json.dumps([["image", "import", sources["small"], "small"], *attempts.values()])
    argv = ["bwrap", "--dev-bind", "/", "/", "--size", str(DISK_BYTES), "--tmpfs", str(disk), "--chdir", str(ROOT)]
    variables = environment() | {"XDG_DATA_HOME": str(disk)}
    argv += [sys.executable, "-c", SCRIPT, given]
    done = subprocess.run(argv, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: list[list[Any]] = json.loads(done.stdout)
    for what, (status, said, (freed, why), is_as_before, small) in zip(attempts, told, strict=True):
        assert status in (1, 2), (what, said)
        assert "no space left" in said.lower(), (what, said)
        assert "Traceback" not in said and said.count("\n") == 1, (what, said)
        assert freed == 0, (what, why)
        assert is_as_before and small == 0, what
