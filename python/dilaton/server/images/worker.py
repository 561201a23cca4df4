"""Looks into the store of images and changes it, in a process and a jail of its own: `python -m
dilaton.server.images.worker`, JSON in, lines of JSON out, of which the last is the answer.

An image is an archive that somebody made; whatever unpacking it does, it does here. The network is there for a pull
alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dilaton.host.errors import HostLacksError
from dilaton.host.sparse import taken_bytes
from dilaton.images.reference import parse
from dilaton.images.store import Image, ImageError, Store
from dilaton.lab.text import units
from dilaton.run.control.errors import ControlError
from dilaton.server.workers import teller
from dilaton.service.images import changes
from dilaton.service.images.bring import bring, size_max


def shown(image: Image) -> dict[str, Any]:
    """An image as it is listed."""
    return {
        "name": image.name,
        "digest": image.digest,
        "size_bytes": image.size_bytes,
        "argv": list(image.argv),
    }


def listed(store: Store) -> dict[str, Any]:
    """All images, and those that are damaged with what is wrong."""
    images, broken = [], []
    for name in sorted(store.names()):
        try:
            images.append(shown(store.find(name)))
        except ImageError as error:
            broken.append({"name": parse(name).short, "wrong": str(error)})
    return {"images": images, "broken": broken}


def inspected(store: Store, name: str) -> dict[str, Any]:
    """An image with its configuration."""
    image = store.find(name)
    about = {"env": image.env, "cwd": image.cwd, "user": image.user, "config": image.config}
    return shown(image) | about


def removed(store: Store, name: str) -> dict[str, Any]:
    """Takes a name away, and frees what no name leads to. A pull that goes on keeps all until the next time."""
    complete = store.remove(name)
    freed = 0
    with contextlib.suppress(ImageError):
        freed = store.collect()
    return {"name": complete, "freed_bytes": freed}


def room(store: Store, store_bytes_max: int | None) -> int:
    """How large the files of one more image may be together, where the store may take so much.

    Raises:
        ImageError: It takes that already.
    """
    most = size_max(store)
    if store_bytes_max is None:
        return most
    taken = taken_bytes(store.directory)
    if taken >= store_bytes_max:
        raise ImageError(
            f"no room: the store of images may take {store_bytes_max} bytes, and takes {taken}; remove some, or have "
            "somebody with more bring it"
        )
    return min(most, store_bytes_max - taken)


def pulled(store: Store, name: str, plain_http: bool, store_bytes_max: int | None) -> dict[str, Any]:
    """Brings an image from its registry."""
    reference, bytes_max = parse(name), room(store, store_bytes_max)
    return shown(bring(store, f"docker://{reference}", reference, teller(), bytes_max, plain_http=plain_http))


def saved(
    store: Store, run: str, node: str, name: str, max_size: str | None, store_bytes_max: int | None
) -> dict[str, Any]:
    """Makes an image of a node of a run that goes on."""
    asked = units.parse_size(max_size) if max_size else size_max(store)
    bytes_max = min(asked, room(store, store_bytes_max)) if store_bytes_max is not None else asked
    return {"image": shown(asyncio.run(changes.save(store, Path(run), node, parse(name), teller(), bytes_max)))}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What is to be said."""
    verbs: dict[str, Callable[..., dict[str, Any]]] = {
        "list": listed,
        "inspect": inspected,
        "remove": removed,
        "pull": pulled,
        "save": saved,
    }
    try:
        return verbs[asked.pop("do")](Store(), **asked)
    except ControlError as error:
        return {"wrong": error.message}
    except (ImageError, OSError, ValueError) as error:
        return {"wrong": str(error)}
    except HostLacksError as error:
        return {"lacks": error.what, "fix": error.fix}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
