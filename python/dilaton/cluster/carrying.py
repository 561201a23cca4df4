"""Carries to machines what their guests need, and they do not have: trees of images, and the kernel."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import tempfile
from collections.abc import Sequence
from typing import IO

from dilaton.cluster.files import kernel
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
    with open(image.file, "rb") as file:
        whole = await _send_parts(lines, machine, file)
    await lines.ask(machine, "carried", digest=image.digest, sha256=whole)


async def _send_parts(lines: Lines, machine: int, file: IO[bytes]) -> str:
    """Sends all of a file; the digest of that."""
    whole = hashlib.sha256()
    while part := file.read(PART_BYTES):
        whole.update(part)
        await lines.ask(machine, "carry", part=base64.b64encode(part).decode())
    return whole.hexdigest()


async def carry_kernel(lines: Lines) -> None:
    """Has guests of all machines run the kernel that is chosen here, unless that is Debian's, which all have.

    Raises:
        GuestError: One cannot keep it, or is lost.
        HostLacksError: One cannot run it as it is to run.
    """
    chosen = kernel.given()
    if chosen is None:
        return
    identity = chosen.identity()

    async def to(machine: int) -> None:
        wanted = {"sha256": identity.sha256, "has_seccomp": identity.has_seccomp}
        if await lines.ask(machine, "use_kernel", **wanted):
            return
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(kernel.pack, chosen, file)
            whole = await _send_parts(lines, machine, file)
        await lines.ask(machine, "carried_kernel", digest=identity.sha256, sha256=whole)
        if not await lines.ask(machine, "use_kernel", **wanted):
            raise GuestError(f"{lines.name(machine)}: the kernel {chosen.name} came there, and is not there")

    await all_of(to(machine) for machine in lines.machines)
