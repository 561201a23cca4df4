"""The page in a browser without a window: from the first look to a run that was read. A failure shows which step failed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dilaton.host.files import PAGE
from tests.conftest import ROOT
from tests.unit.server.serving import served, use_stub

CHROMIUM = shutil.which("chromium")
JOURNEY = ROOT / "web" / "tests" / "journey" / "journey.mjs"

LIMIT_HOST_S = 240
"""What keeps a browser that hangs from holding up the others; a journey takes a minute."""


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: ./dev setup does it where it may")
@pytest.mark.skipif(
    not (ROOT / "web" / "node_modules" / "playwright-core").is_dir() or not (PAGE / "index.html").is_file(),
    reason="the page and its tools are not built: ./dev setup does it where there is npm",
)
def test_the_page_leads_from_the_first_look_to_a_run_that_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_stub(monkeypatch)
    with served(tmp_path / "server") as server:
        cookie = server.client().headers["Cookie"]
        ran = subprocess.run(
            ["node", str(JOURNEY), server.settings.origin, cookie],
            env=os.environ | {"CHROMIUM": str(CHROMIUM)},
            capture_output=True,
            text=True,
            timeout=LIMIT_HOST_S,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
