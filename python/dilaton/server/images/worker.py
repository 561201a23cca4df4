"""Looks into the store of images and changes it, in a process and a jail of its own: `python -m
dilaton.server.images.worker`, JSON in, lines of JSON out, of which the last is the answer.

An image is an archive that somebody made; whatever unpacking it does, it does here. The network is there for a pull
alone.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from dilaton.host.errors import HostLacksError
from dilaton.images.reference import parse
from dilaton.images.store import Image, ImageError, Store
from dilaton.service.images.bring import bring, size_max

TELL_HOST_S = 0.5
"""How often it is told how far a pull has come."""


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


def pulled(store: Store, name: str, plain_http: bool) -> dict[str, Any]:
    """Brings an image from its registry."""
    told = 0.0

    def tell(what: str, size: int) -> None:
        nonlocal told
        if time.monotonic() - told >= TELL_HOST_S:
            told = time.monotonic()
            print(json.dumps({"what": what, "bytes": size}), flush=True)

    reference = parse(name)
    return shown(bring(store, f"docker://{reference}", reference, tell, size_max(store), plain_http=plain_http))


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What is to be said."""
    verbs: dict[str, Callable[..., dict[str, Any]]] = {
        "list": listed,
        "inspect": inspected,
        "remove": removed,
        "pull": pulled,
    }
    try:
        return verbs[asked.pop("do")](Store(), **asked)
    except (ImageError, ValueError) as error:
        return {"wrong": str(error)}
    except HostLacksError as error:
        return {"lacks": error.what, "fix": error.fix}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
