"""What a server makes of a lab, as the command line does: its network for other programs, its lock, itself on few guests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.lab.exporters import FORMATS
from dilaton.lab.loader import loads
from tests.conftest import dilaton
from tests.unit.server.serving import Served, served

LINE = "name: line\ntopology: {generate: line, nodes: 3, rate: 10Mbit}\nseed: 3\n"
STAR = "# Forty machines.\nname: star\ntopology: {generate: star, leaves: 40, delay: 5ms}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_network_is_written_as_the_command_line_writes_it(form: str, server: Served, tmp_path: Path) -> None:
    given = {"text": LINE, "form": form, "overrides": {"settings": ["topology.nodes=5"]}}
    found = server.client().api("POST", "/export", given)
    (tmp_path / "line.yaml").write_text(LINE)
    done = dilaton("export", "line.yaml", "--set", "topology.nodes=5", "--to", form, "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert found["text"] == (tmp_path / "out").read_text()
    assert found["left_out"] and done.stdout.endswith(f": {', '.join(found['left_out'])}\n")


def test_a_lab_on_few_guests_can_run_and_says_what_that_means(server: Served) -> None:
    found = server.client().api("POST", "/scale", {"text": STAR, "onto": 4})
    lab = loads(found["text"], "lab.yaml")
    assert found["text"].startswith("# Forty machines.\n")
    assert (lab.split, lab.time.tdf) == (4, found["tdf"])
    assert sorted(name for guest in found["guests"] for name in guest["machines"]) == sorted(
        name for name, node in lab.nodes.items() if node.cpu is not None
    )
    assert found["host_s_per_virtual_s_max"] >= found["tdf"] and found["not_scaled"]


def test_what_cannot_be_made_of_a_lab_is_said_with_its_place(server: Served) -> None:
    owner = server.client()
    assert owner.api("POST", "/lock", {"text": LINE}) == {"images": {}}
    assert "'graphml'" in owner.api("POST", "/export", {"text": LINE, "form": "tiff"}, 422)["detail"]
    wrong = owner.api("POST", "/export", {"text": LINE.replace("line, n", "lime, n"), "form": "dot"}, 422)
    assert wrong["problems"][0]["line"] == 2
    assert (
        "7: the lab has 40, its hosts"
        in owner.api("POST", "/scale", {"text": STAR, "onto": 2, "machines": 7}, 422)["detail"]
    )
