"""What nodes with one image cost beside nodes with this machine's tree, by counts that the host's load does not change."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from tests.conftest import dilaton, environment, run_in
from tests.images import needs_programs

pytestmark = needs_programs

FEW, MANY = 2, 22
HUNDRED = 100
MORE_TIME_MAX = 1.3
"""Which part of the CPU time of nodes without an image those of one image may take until they are ready, and to the end."""
ROUNDS = 6
"""Of both, the least of which count, at most."""
MORE_BYTES_MAX = 256 << 10
"""What a node with an image may take of its guest's memory above one without, where 2 MB are promised."""


def free_bytes(directory: Path, image: str, nodes: int) -> int:
    """What a guest has free once so many nodes run a program each. The event drive makes it the same every time."""
    lab = ["name: m", "time: {drive: event}", "nodes:", *(f"  n{i}: {{image: {image}}}" for i in range(nodes)), "run:"]
    lab += [f"  - {{on: n{i}, name: p{i}, exec: sleep 5, background: true}}" for i in range(nodes)]
    lab += ["  - {on: n0, name: memory, exec: cat /proc/meminfo, start: 2s}", ""]
    place = directory / f"{image}-{nodes}"
    place.mkdir()
    outcome = run_in(place, "\n".join(lab))
    assert outcome.status == 0
    words = dict(line.split(":") for line in outcome.stdout("n0", "memory").splitlines())
    return int(words["MemFree"].split()[0]) << 10


def cpu_s(directory: Path, image: str) -> float:
    """CPU seconds of a run of a hundred nodes that do nothing, with all that is below its process."""
    lab = ["name: m", "nodes:", *(f"  n{i}: {{image: {image}}}" for i in range(HUNDRED))]
    lab += ["run: [{on: n0, exec: sleep 1}]", ""]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run_in(directory, "\n".join(lab)).status == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_hundred_nodes_of_an_image_are_ready_about_as_soon_as_nodes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    recipe = tmp_path / "box.yaml"
    recipe.write_text("host: [sleep]\n")
    assert dilaton("image", "build", recipe, "box", env=environment()).returncode == 0
    # In turn, so that what else the machine does, which can double what a run takes, meets both; again where it met one alone.
    rounds: list[list[float]] = []
    while len(rounds) < ROUNDS:
        rounds += [[cpu_s(tmp_path, image) for image in ("host", "box")] for _ in range(2)]
        host, box = map(min, zip(*rounds, strict=True))
        if box <= MORE_TIME_MAX * host:
            return
    pytest.fail(f"CPU seconds without and with an image: {rounds}")


def test_a_further_node_of_an_image_takes_no_more_memory_than_one_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    recipe = tmp_path / "box.yaml"
    recipe.write_text("host: [cat, sleep]\n")
    assert dilaton("image", "build", recipe, "box", env=environment()).returncode == 0
    host, box = (
        (free_bytes(tmp_path, image, FEW) - free_bytes(tmp_path, image, MANY)) // (MANY - FEW)
        for image in ("host", "box")
    )
    assert host > 0, "nodes take some"
    assert box <= host + MORE_BYTES_MAX
