"""An image of a node of a run that goes on: its own image, and what the node has changed of it as one more layer.

The layer is packed in the node by the agent's program (`crates/agent/src/node/changes.rs`), so the image needs no
program for it. What the node sends is read as any layer is: its root may have made it.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import BinaryIO

from dilaton.images.layers import Tree
from dilaton.images.reference import Reference
from dilaton.images.store import Image, ImageError, Store
from dilaton.plan.model import Plan, StoredImage
from dilaton.run.control.session_client import attended, reached
from dilaton.run.files.outputs import read_output
from dilaton.service.images.bring import explained
from dilaton.service.images.plain import LAYER
from dilaton.service.images.programs import WATCH_S
from dilaton.service.images.roots import Progress, make_root

PROGRAM = ("/proc/1/exe", "changes")


async def save(store: Store, run_dir: Path, node: str, name: Reference, progress: Progress, bytes_max: int) -> Image:
    """Makes an image of a node, with what it runs as its image has it.

    Args:
        store: The store, which has the node's image.
        run_dir: The run.
        node: A node with an image.
        name: What the new image will be called.
        progress: Is told of it.
        bytes_max: How large its files may be together.

    Raises:
        ImageError: The node has no image, or the new one cannot be made; the store is as before.
        ControlError: No run goes on there, it has no such node, or it ended meanwhile.
        HostLacksError: This machine lacks a program for it.
    """
    plan = Plan.model_validate_json(read_output(run_dir / "plan.json"))
    image = next((each.image for each in plan.nodes if each.name == node), None)
    if image is not None and not isinstance(image, StoredImage):
        raise ImageError(f"{node}: has this machine's file tree; only of a node with an image one can be made")
    with explained(node), store.adding() as adding:
        layer = adding.staging / "changes"
        with layer.open("w+b") as file:
            await _pack(run_dir, node, file, progress, bytes_max)
            file.seek(0)
            # Here, so that nothing comes into the store that no image can have.
            Tree(bytes_max).add(file)
        assert image is not None, "a run refuses sessions in nodes that it does not have"
        digest = _over(store, image.digest, layer, adding.staging)
        if not store.root(digest).exists():
            make_root(store, digest, adding, progress, bytes_max)
        store.name(name, digest)
    return store.find(str(name))


async def _pack(run_dir: Path, node: str, into: BinaryIO, progress: Progress, bytes_max: int) -> None:
    """Has a node write what it has changed."""
    with tempfile.TemporaryFile() as errors:
        packing = asyncio.create_task(attended(reached(run_dir), node, PROGRAM, None, into.fileno(), errors.fileno()))
        try:
            while not packing.done():
                await asyncio.wait({packing}, timeout=WATCH_S)
                size = into.seek(0, 2)
                progress(f"changes of {node}", size)
                if size > bytes_max:
                    raise ImageError("larger than an image may be; see --max-size")
        finally:
            packing.cancel()
            await asyncio.wait({packing})
        ending = packing.result()
        if ending.status != 0:
            errors.seek(0)
            said = ending.reason or errors.read(4096).decode(errors="replace").strip()
            raise ImageError(said or f"ended with status {ending.status}")


def _over(store: Store, below: str, layer: Path, staging: Path) -> str:
    """Puts a layer over those of an image: the digest of the new one's manifest."""
    manifest = store.manifest(below)
    config = store.document(manifest["config"]["digest"])
    size = layer.stat().st_size
    digest = store.keep(layer)
    config["rootfs"]["diff_ids"].append(digest)
    if "history" in config:
        config["history"].append({"created_by": "dilaton save"})
    config_digest, config_size = store.keep_document(staging, config)
    manifest["config"] |= {"digest": config_digest, "size": config_size}
    manifest["layers"].append({"mediaType": LAYER, "digest": digest, "size": size})
    return store.keep_document(staging, manifest)[0]
