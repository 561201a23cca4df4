"""The pure parts of the page: the picture of a run, samples, layouts; by vitest, whose report a failure shows."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import ROOT

WEB = ROOT / "web"


@pytest.mark.skipif(
    not (WEB / "node_modules" / ".bin" / "vitest").exists(),
    reason="the page's tools are not installed: ./dev setup does it where there is npm",
)
def test_the_pure_parts_of_the_page_do_what_their_tests_say() -> None:
    ran = subprocess.run(
        ["npm", "--prefix", str(WEB), "run", "--silent", "test"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
