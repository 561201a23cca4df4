"""`dilaton save`: a node of a run that goes on becomes an image, and a run a saved lab."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dilaton.cli.errors import BadInputError, failing, refusing
from dilaton.cli.machine.image import bytes_of, shown
from dilaton.images.reference import parse
from dilaton.images.store import ImageError, Store
from dilaton.measure import numbers
from dilaton.run.control.errors import ControlError
from dilaton.service.catalogue import find
from dilaton.service.images import changes


def save(place: str, name: str, max_size: str | None) -> None:
    """Saves a run, or a node of one.

    Args:
        place: RUN, or RUN:NODE.
        name: What the saved lab or the image will be called.
        max_size: Of an image, how large its files may be together; None: half of what is free.

    Raises:
        BadInputError: There is no such run or node, or no such name can be.
        FailedError: It cannot be saved.
    """
    if ":" in place and not Path(place).exists():
        save_node(place, name, max_size)
    elif max_size is not None:
        raise BadInputError("--max-size: is of an image; write RUN:NODE for one")
    else:
        save_run(place, name)


@refusing(ControlError)
def save_run(run: str, name: str) -> None:
    """Makes a saved lab of a run."""
    from dilaton.service.saved.save import save
    from dilaton.service.saved.store import SavedLabs
    from dilaton.templates.store import TemplateError

    store = SavedLabs()
    with failing(TemplateError, OSError), shown() as progress:
        kept, left_out = save(store, find(run), name, progress)
    for said in left_out:
        print(said, file=sys.stderr)
    print(f"{name}: {kept.lab} as at {numbers.duration(kept.virtual_s)}; dilaton up {name} goes on from there")


@refusing(ControlError)
def save_node(place: str, name: str, max_size: str | None) -> None:
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
