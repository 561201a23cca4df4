"""Who does not serve pays nothing for the server: nothing of it is imported, or needs to be there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dilaton.cli.runs import serve
from dilaton.host.errors import HostLacksError
from dilaton.server.__main__ import main
from tests.conftest import environment

IMPORT_ALL_BUT_THE_SERVER = """
import pkgutil, sys
import dilaton
for part in ("cli", "service", "run", "report"):
    for module in pkgutil.walk_packages([f"{dilaton.__path__[0]}/{part}"], f"dilaton.{part}."):
        __import__(module.name)
print(sorted(name for name in sys.modules if name.split(".")[0] in %r or name.startswith("dilaton.server")))
"""


def test_nothing_of_the_server_is_imported_by_anything_else() -> None:
    code = IMPORT_ALL_BUT_THE_SERVER % (serve.NEEDED,)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_server_loads_nothing_that_draws() -> None:
    code = "import sys, dilaton.server.serve; print({'numpy', 'pandas', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_a_server_that_is_not_installed_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "NEEDED", ("fastapi", "no_such_package"))
    with pytest.raises(HostLacksError, match=r"no_such_package.*pip install dilaton\[server\]"):
        serve.become_server({"port": 0})


def test_what_cannot_be_served_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"host": "0.0.0.0", "port": 0, "directory": str(tmp_path), "at_once": 1}
    assert main(json.dumps(asked)) == 2
    assert "a server that listens on 0.0.0.0 has a URL of https://" in capsys.readouterr().err
