"""Carries to machines what their guests need of the store of images, and they do not have."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from dilaton.cluster.files.carried import images
from dilaton.cluster.lines import Lines
from dilaton.host.errors import GuestError, MachineLostError
from dilaton.host.tasks import all_of
from dilaton.plan.model import Plan, StoredImage

PART_BYTES = 1 << 20
"""So much is under way to a machine at a time; its guests are not there yet."""


async def carry(planned: Plan, homes: Sequence[int], lines: Lines) -> None:
    """Has each machine have the images of its nodes.

    Raises:
        GuestError: One cannot keep them, or is lost.
    """

    async def to(machine: int) -> None:
        here = [guest.name for guest, home in zip(planned.guests, homes, strict=True) if home == machine]
        wanted = images(planned, here)
        if not wanted:
            return
        asked = [image.model_dump(mode="json") for image in wanted.values()]
        for digest in await lines.ask(machine, "lacks", images=asked):
            try:
                await _send(lines, machine, wanted[digest])
            except MachineLostError:
                raise
            except (GuestError, OSError) as error:
                name = wanted[digest].name
                raise GuestError(f"{lines.name(machine)}: the image {name} cannot be carried there: {error}") from error

    await all_of(to(machine) for machine in lines.machines)


async def _send(lines: Lines, machine: int, image: StoredImage) -> None:
    whole = hashlib.sha256()
    with open(image.file, "rb") as file:
        while part := file.read(PART_BYTES):
            whole.update(part)
            await lines.ask(machine, "carry", part=base64.b64encode(part).decode())
    await lines.ask(machine, "carried", digest=image.digest, sha256=whole.hexdigest())
