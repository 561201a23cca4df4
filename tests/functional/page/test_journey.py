"""The page in a browser without a window: from the first look to a run that was read. A failure shows which step failed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dilaton.host.files import PAGE
from dilaton.server.access.single_sign_on import Provider
from tests.conftest import ROOT
from tests.unit.server.serving import end_runs, served, use_stub

CHROMIUM = shutil.which("chromium")
JOURNEYS = ROOT / "web" / "tests" / "journey"

LIMIT_HOST_S = 600
"""What keeps a browser that hangs from holding up the others; a journey takes a minute or two."""

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: ./dev setup does it where it may"),
    pytest.mark.skipif(
        not (ROOT / "web" / "node_modules" / "playwright-core").is_dir() or not (PAGE / "index.html").is_file(),
        reason="the page and its tools are not built: ./dev setup does it where there is npm",
    ),
]


def journey(name: str, directory: Path, roles: Path | None = None) -> None:
    """Makes a journey on a server whose data are in a directory, with a file of roles."""
    provider = Provider("https://login.invalid", "dilaton", "")
    with served(directory, roles=roles, registries=("registry.invalid",), provider=provider) as server:
        try:
            ran = subprocess.run(
                ["node", str(JOURNEYS / name), server.settings.origin, server.client().headers["Cookie"]],
                env=os.environ | {"CHROMIUM": str(CHROMIUM)},
                capture_output=True,
                text=True,
                timeout=LIMIT_HOST_S,
                check=False,
            )
        finally:
            end_runs(server)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", ["labs", "drawing", "together", "runs", "desk"])
def test_the_page_leads_from_the_first_look_to_a_run_that_was_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_stub(monkeypatch)
    # Less than any guest has: whatever ann runs has to be approved.
    (tmp_path / "roles.yaml").write_text("quotas: {ann: {memory: 1MiB}}\n")
    journey(f"{name}.mjs", tmp_path / "server", tmp_path / "roles.yaml")


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has runs get as much of a core as other tests, which somebody who looks at them would wait for."""
    monkeypatch.setattr("dilaton.server.runs.keeper.BEHIND", 0)
    monkeypatch.setattr("dilaton.server.runs.keeper.behind_of", lambda _: 0)


@pytest.mark.usefixtures("beside")
def test_the_tour_ends_with_a_network_that_ran_and_its_graph(tmp_path: Path) -> None:
    journey("tour.mjs", tmp_path / "server")


@pytest.mark.usefixtures("beside")
def test_all_that_the_page_is_for_is_done_in_one_go_by_the_keyboard_alone(tmp_path: Path) -> None:
    journey("whole.mjs", tmp_path / "server")


@pytest.mark.usefixtures("beside")
def test_a_node_is_looked_into_while_it_runs(tmp_path: Path) -> None:
    journey("node.mjs", tmp_path / "server")


def test_a_thousand_nodes_are_panned_and_the_page_answers_while_packets_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_stub(monkeypatch)
    journey("large.mjs", tmp_path / "server")
