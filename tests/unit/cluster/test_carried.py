"""Trees of images that are carried to a machine: whole or not there, found by their digest, and gone when nobody uses them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from dilaton.cluster.agent import Agent
from dilaton.cluster.carrying import carry, carry_kernel
from dilaton.cluster.engines.engine import Order
from dilaton.cluster.files import carried, kernel
from dilaton.cluster.lines import Lines
from dilaton.cluster.relay import Relay
from dilaton.host.errors import GuestError, MachineLostError
from dilaton.host.here.uml import kernels
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan, StoredImage

DIGEST = "sha256:" + "5" * 64
TREE = b"hsqs" + bytes(range(256)) * 9000
"""More than two parts."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/dilaton/carried"


@pytest.fixture
def planned(tmp_path: Path) -> Plan:
    """Two nodes on two guests, the first of which has an image."""
    plan = compile_plan(loads("name: lab\nguests: per-node\nnodes: {a: , b: }\nrun: [{on: a, exec: sh}]", "lab.yaml"))
    file = tmp_path / "store" / "tree"
    file.parent.mkdir()
    file.write_bytes(TREE)
    image = StoredImage(name="box", digest=DIGEST, file=str(file), device=15)
    a, b = plan.nodes
    return plan.model_copy(update={"nodes": [a.model_copy(update={"image": image}), b]})


class Asked:
    """Lines to agents of this process, which see another store."""

    def __init__(self, agents: list[Agent]) -> None:
        self.agents, self.machines, self.said = agents, range(len(agents)), list[tuple[int, str]]()

    def name(self, machine: int) -> str:
        return f"ws{machine}"

    async def ask(self, machine: int, do: str, **arguments: Any) -> Any:
        self.said.append((machine, do))
        for image in arguments.get("images", []):
            image["file"] += ".elsewhere"
        return await getattr(self.agents[machine], f"do_{do}")(arguments)


def agents(tmp_path: Path, count: int) -> list[Agent]:
    made = []
    for number in range(count):
        directory = tmp_path / f"agent{number}"
        directory.mkdir()
        made.append(Agent(Order("", "", number, str(directory)), cast("Relay", None), -1))
    return made


def test_a_machine_is_sent_what_its_own_guests_need_and_has_it_from_then_on(
    planned: Plan, tmp_path: Path, cache: Path
) -> None:
    lines = Asked(agents(tmp_path, 2))
    asyncio.run(carry(planned, [1, 0], cast("Lines", lines)))
    assert {machine for machine, _ in lines.said} == {1}, "the other one has no node with an image"
    assert [do for _, do in lines.said].count("carry") == 3
    (file,) = cache.iterdir()
    assert file.read_bytes() == TREE
    lines.said.clear()
    asyncio.run(carry(planned, [0, 1], cast("Lines", lines)))
    assert lines.said == [(0, "lacks")]
    image = planned.nodes[0].image
    assert isinstance(image, StoredImage)
    elsewhere = planned.model_copy(
        update={
            "nodes": [
                planned.nodes[0].model_copy(update={"image": image.model_copy(update={"file": "/nowhere"})}),
                planned.nodes[1],
            ]
        }
    )
    found = carried.placed(elsewhere).nodes[0].image
    assert isinstance(found, StoredImage) and found.file == str(file)
    assert carried.placed(planned) == planned, "what is there under its path is used"


def test_what_came_otherwise_than_it_was_sent_has_no_name(tmp_path: Path, cache: Path) -> None:
    arriving = carried.Arriving(tmp_path / "arriving")
    arriving.add(TREE[:-1])
    with pytest.raises(GuestError, match="is not what was sent"):
        arriving.finish(DIGEST, hashlib.sha256(TREE).hexdigest())
    assert not list(cache.glob("*")) and not (tmp_path / "arriving").exists()
    arriving = carried.Arriving(tmp_path / "arriving")
    with pytest.raises(GuestError, match="not a digest"):
        arriving.finish("sha256:../../x", hashlib.sha256().hexdigest())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (GuestError("No space left on device"), "ws0: the image box cannot be carried there: No space left on device"),
        (MachineLostError("ws0", "ws0 was lost: gone"), "ws0 was lost: gone"),
    ],
)
def test_why_an_image_cannot_be_carried_is_told_with_the_machine(
    planned: Plan, tmp_path: Path, error: GuestError, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object, part: bytes) -> None:
        raise error

    monkeypatch.setattr(carried.Arriving, "add", fail)
    with pytest.raises(type(error)) as raised:
        asyncio.run(carry(planned, [0, 0], cast("Lines", Asked(agents(tmp_path, 1)))))
    assert str(raised.value) == said


def test_what_nobody_has_used_for_a_month_goes_when_something_else_comes(planned: Plan, cache: Path) -> None:
    cache.mkdir(parents=True)
    old, used = (cache / f"{digit * 64}.squashfs" for digit in "67")
    for file in (old, used):
        file.write_bytes(b"")
        os.utime(file, (0, time.time() - carried.UNUSED_HOST_S_MAX - 60))
    image = planned.nodes[0].image
    assert isinstance(image, StoredImage)
    assert carried.found(image.model_copy(update={"file": "/nowhere", "digest": "sha256:" + "7" * 64})) == used
    arriving = carried.Arriving(cache.parent / "arriving")
    arriving.add(base64.b64decode("aHNxcw=="))
    arriving.finish(DIGEST, hashlib.sha256(b"hsqs").hexdigest())
    assert {file.name[0] for file in cache.iterdir()} == {"5", "7"}


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> kernels.Kernel:
    """A kernel of our own, which is chosen where runs are conducted."""
    directory = tmp_path / "built"
    (directory / "modules/7.0").mkdir(parents=True)
    (directory / "linux.uml").write_bytes(TREE)
    (directory / "linux.uml").chmod(0o755)
    (directory / "modules/7.0/modules.builtin").write_text("kernel/net/ipv4/tcp_bbr.ko\n")
    described = kernels.Built("7.0", "linux-7.0", "", "", hashlib.sha256(TREE).hexdigest())
    (directory / "kernel.json").write_text(kernels.describe(described))
    monkeypatch.setenv(kernels.VARIABLE, str(directory))
    return kernels.chosen()


def test_a_kernel_comes_to_a_machine_once_and_its_guests_run_it(
    built: kernels.Kernel, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built.built is not None
    lines = Asked(agents(tmp_path, 2))
    asyncio.run(carry_kernel(cast("Lines", lines)))
    place = cache / f"{built.built.sha256}.kernel"
    # Both agents are of this process, and so have it then.
    assert os.environ[kernels.VARIABLE] == str(place)
    assert kernels.chosen() == replace(built, program=place / "linux.uml", modules=place / "modules")
    assert (place / "modules/7.0/modules.builtin").read_text() == "kernel/net/ipv4/tcp_bbr.ko\n"
    assert os.access(place / "linux.uml", os.X_OK)
    assert list(cache.iterdir()) == [place]
    assert not [path for agent in ("agent0", "agent1") for path in (tmp_path / agent).iterdir()]
    lines.said.clear()
    monkeypatch.setenv(kernels.VARIABLE, str(built.program.parent))
    asyncio.run(carry_kernel(cast("Lines", lines)))
    assert lines.said == [(0, "use_kernel"), (1, "use_kernel")]


def test_debians_kernel_is_carried_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.VARIABLE, kernels.DEBIAN)
    lines = Asked(agents(tmp_path, 1))
    asyncio.run(carry_kernel(cast("Lines", lines)))
    assert not lines.said


@pytest.mark.parametrize("spoilt", ["linux.uml", "kernel.json"])
def test_a_kernel_that_is_not_the_one_that_was_meant_is_not_kept(
    built: kernels.Kernel, spoilt: str, tmp_path: Path, cache: Path
) -> None:
    assert built.built is not None
    (built.program.parent / spoilt).write_bytes(b"{}")
    cache.mkdir(parents=True)
    contents = tmp_path / "contents"
    with contents.open("w+b") as file:
        kernel.pack(built, file)
    with pytest.raises(GuestError, match=r"cannot be kept|is not the kernel"):
        kernel.keep(contents, built.built.sha256, tmp_path)
    assert not list(cache.iterdir()) and not (tmp_path / "kernel").exists()
