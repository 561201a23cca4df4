"""`dilaton save`: a node of a run that goes on becomes an image."""

from __future__ import annotations

import asyncio

from dilaton.cli.errors import BadInputError, failing, refusing
from dilaton.cli.machine.image import bytes_of, shown
from dilaton.images.reference import parse
from dilaton.images.store import ImageError, Store
from dilaton.run.control.errors import ControlError
from dilaton.service.catalogue import find
from dilaton.service.images import changes


@refusing(ControlError)
def save(place: str, name: str, max_size: str | None) -> None:
    """Makes an image of a node.

    Args:
        place: RUN:NODE.
        name: What the image will be called.
        max_size: How large its files may be together; None: half of what is free.

    Raises:
        BadInputError: There is no such run or node, or no such name can be.
        FailedError: The image cannot be made.
    """
    run, _, node = place.rpartition(":")
    if not run:
        raise BadInputError(f"{place}: write RUN:NODE")
    with refusing(ValueError):
        reference = parse(name)
    store = Store()
    bytes_max = bytes_of(store, max_size)
    with failing(ImageError, OSError), shown() as progress:
        image = asyncio.run(changes.save(store, find(run), node, reference, progress, bytes_max))
    print(f"{image.name} {image.digest}")
