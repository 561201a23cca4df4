"""Images of a server: from registries that it takes alone, by workers, and for everybody's labs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dilaton.server.images.keeping import AT_ONCE, Images
from tests.conftest import PATIENCE_HOST_S
from tests.images import needs_programs
from tests.unit.images.registry import Registry, serving
from tests.unit.server.serving import Client, Served, served

pytestmark = needs_programs

LAB = """\
name: boxes
nodes: {a: {image: "NAME"}, b: {}}
links: [a -- b]
run:
  - {on: b, name: first, exec: "true"}
"""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with serving(tmp_path / "registry") as found:
        yield found


@pytest.fixture
def server(tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    roles = tmp_path / "roles.yaml"
    roles.write_text("{}\n")
    with served(tmp_path / "server", registries=(f"http://{registry.name}", "quay.io"), roles=roles) as found:
        yield found


def settled(client: Client, pull: Any, *states: str) -> Any:
    """Waits until a pull has one of these states."""
    deadline = time.monotonic() + PATIENCE_HOST_S
    while (shown := client.api("GET", f"/pulls/{pull['pull']}"))["state"] not in states:
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)
    return shown


def test_an_image_is_pulled_named_in_labs_by_everybody_and_removed(server: Served, registry: Registry) -> None:
    owner = server.client()
    owner.api("POST", "/people", {"name": "ann"})
    ann = server.client("ann")
    name = f"{registry.name}/some/box:1"
    text = LAB.replace("NAME", name)
    assert "not in the store" in ann.api("POST", "/check", {"text": text}, 422)["detail"]
    pull = settled(owner, owner.api("POST", "/images", {"name": name}), "done", "failed")
    assert (pull["state"], pull["reason"], pull["image"]) == ("done", "", name)
    said = ann.api("GET", "/images")
    assert [(one["name"], one["digest"], one["argv"]) for one in said["images"]] == [(name, registry.digest, ["/a"])]
    assert said["registries"] == sorted([registry.name, "quay.io"]) and said["broken"] == []
    assert ann.api("GET", f"/images/{name}")["config"]["config"] == {"Cmd": ["/a"]}
    assert ann.api("GET", f"/images/{registry.digest}")["name"] == name
    assert ann.api("POST", "/check", {"text": text})["plan"]["nodes"][0]["name"] == "a"
    ann.api("DELETE", f"/images/{name}", status=403)
    owner.api("DELETE", f"/images/{name}")
    assert ann.api("GET", "/images")["images"] == []
    owner.api("DELETE", f"/images/{name}", status=404)
    ann.api("GET", f"/images/{name}", status=404)
    assert not list((Path(server.settings.directory).parent / "data/dilaton/images/roots").iterdir()), "it is freed"
    done = [entry["action"] for entry in owner.api("GET", "/audit")]
    assert "image.pull" in done and "image.remove" in done


@pytest.mark.parametrize(
    "name",
    [
        "nginx",
        "127.0.0.1:1/x/y",
        "169.254.169.254/latest/meta-data",
        "localhost/x",
        "quay.io.evil.example/x",
        "QUAY.IO/x",
        "quay.io:443/x",
    ],
)
def test_nothing_is_asked_of_a_machine_that_is_no_registry_of_the_server(server: Served, name: str) -> None:
    said = server.client().api("POST", "/images", {"name": name}, 403)
    assert said["type"] == "urn:dilaton:registry" and "quay.io" in said["detail"]
    assert server.client().api("GET", "/pulls") == []


@pytest.mark.parametrize(
    "name",
    ["docker://quay.io/x", "oci-archive:/etc/passwd", "/etc/passwd", "--help", "quay.io/../x", "", "quay.io/x y"],
)
def test_what_is_no_name_of_an_image_is_refused(server: Served, name: str) -> None:
    server.client().api("POST", "/images", {"name": name}, 422)
    assert server.client().api("GET", "/pulls") == []


def test_a_pull_that_fails_says_why_and_leaves_the_store_as_it_was(server: Served, registry: Registry) -> None:
    owner = server.client()
    registry.cuts.add(registry.layers[1])
    pull = settled(owner, owner.api("POST", "/images", {"name": f"{registry.name}/some/box:1"}), "done", "failed")
    assert pull["state"] == "failed" and pull["reason"]
    assert owner.api("GET", "/images")["images"] == []


def test_a_pull_that_is_cancelled_ends_and_so_does_its_process(
    server: Served, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = server.client()
    asked, go_on = threading.Event(), threading.Event()

    def wait(*_: Any, **__: Any) -> None:
        asked.set()
        go_on.wait(PATIENCE_HOST_S)

    monkeypatch.setattr(registry.RequestHandlerClass, "answer", wait)
    name = f"{registry.name}/some/box:1"
    pull = owner.api("POST", "/images", {"name": name})
    assert owner.api("POST", "/images", {"name": name})["pull"] == pull["pull"], "who asks again gets the same"
    assert asked.wait(PATIENCE_HOST_S)
    owner.api("DELETE", f"/pulls/{pull['pull']}")
    assert owner.api("GET", f"/pulls/{pull['pull']}")["state"] == "cancelled"
    go_on.set()
    with owner.stream("/events?after=0") as events:
        states = []
        for _, kind, data in events:
            states += [data["state"]] if kind == "image" else []
            if "cancelled" in states:
                break
    assert "going" in states


def test_who_may_fill_the_store_no_further_brings_no_more(server: Served, registry: Registry) -> None:
    owner, name = server.client(), f"{registry.name}/some/box:1"
    assert server.settings.roles is not None
    server.settings.roles.write_text("quotas: {owner: {images: 1KiB}}\n")
    assert owner.api("GET", "/session")["quota"]["images_bytes"] == 1024
    pull = settled(owner, owner.api("POST", "/images", {"name": name}), "done", "failed")
    assert pull["state"] == "failed" and "no room: the store of images may take 1024 bytes" in pull["reason"]
    assert owner.api("GET", "/images")["images"] == []
    server.settings.roles.write_text("quotas: {owner: {images: 1GiB}}\n")
    assert settled(owner, owner.api("POST", "/images", {"name": name}), "done", "failed")["state"] == "done"


@pytest.mark.parametrize(("bytes_max", "together"), [(None, AT_ONCE), (1 << 30, 1)])
def test_no_two_images_come_at_once_into_the_same_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_max: int | None, together: int
) -> None:
    going, most = 0, 0

    async def bring(*_: Any) -> None:
        nonlocal going, most
        going += 1
        most = max(most, going)
        for _ in range(100):  # in which others could begin
            await asyncio.sleep(0)
        going -= 1

    async def changed(_: Any) -> None:
        pass

    async def pulled() -> list[str]:
        images = Images(tmp_path, ["quay.io"])
        pulls = [images.pull(f"quay.io/x:{number}", "ann", changed, bytes_max) for number in range(4)]
        await asyncio.gather(*(pull.task for pull in pulls if pull.task))
        return [pull.state for pull in pulls]

    monkeypatch.setattr(Images, "_bring", bring)
    assert asyncio.run(pulled()) == ["done"] * 4
    assert most == together
