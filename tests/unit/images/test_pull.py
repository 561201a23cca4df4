"""Images come from a registry: one on the loopback, which does what a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.images.reference import parse
from dilaton.images.store import Image, ImageError, Store
from dilaton.service.images import bring as images
from tests.images import needs_programs
from tests.unit.images.registry import Registry, serving

pytestmark = needs_programs


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with serving(tmp_path / "registry") as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def pull(store: Store, name: str) -> Image:
    """Brings an image from a registry."""
    reference = parse(name)
    return images.bring(store, f"docker://{reference}", reference, lambda *_: None, 1 << 30, plain_http=True)


def test_an_image_is_pulled_by_tag_and_by_digest(store: Store, registry: Registry) -> None:
    by_tag = pull(store, f"{registry.name}/some/box:1")
    assert (by_tag.digest, by_tag.argv) == (registry.digest, ("/a",))
    by_digest = pull(store, f"{registry.name}/some/box@{registry.digest}")
    assert by_digest.digest == by_tag.digest
    layers = [one["digest"] for one in store.manifest(by_tag.digest)["layers"]]
    assert [registry.asked.count(one) for one in layers] == [1, 1], "what is in the store is not brought again"
    assert set(store.names()) == {f"{registry.name}/some/box:1", f"{registry.name}/some/box@{registry.digest}"}


def test_a_registry_that_stops_leaves_the_store_as_it_was_and_the_next_pull_goes_on(
    store: Store, registry: Registry
) -> None:
    first, second = registry.layers
    registry.cuts = {second}
    with pytest.raises(ImageError, match="box"):
        pull(store, f"{registry.name}/box")
    assert store.names() == {}
    registry.cuts = set()
    assert pull(store, f"{registry.name}/box").digest == registry.digest
    assert second in registry.asked and first in registry.asked


def test_a_digest_that_does_not_match_is_refused(store: Store, registry: Registry) -> None:
    wrong = f"sha256:{'1' * 64}"
    path = registry.directory / "blobs/sha256"
    (path / wrong[7:]).write_bytes((path / registry.digest[7:]).read_bytes())
    with pytest.raises(ImageError, match=r"(?i)digest"):
        pull(store, f"{registry.name}/box@{wrong}")
    assert store.names() == {}


def test_a_registry_that_is_not_there_is_told(store: Store) -> None:
    with pytest.raises(ImageError, match=r"127\.0\.0\.1:1/box.*connection refused"):
        pull(store, "127.0.0.1:1/box")
