"""Images that nodes may have: which there are, pulled from registries, removed."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, Field

from dilaton.images.reference import LENGTH_MAX
from dilaton.server.access.callers import Caller
from dilaton.server.api.endpoints import LOGGED_IN, PREFIX, Endpoints, Server, Who, needs
from dilaton.server.api.session import Asked
from dilaton.server.database.actions import note, tell
from dilaton.server.images import keeping
from dilaton.server.images.keeping import PullState
from dilaton.server.state import State

ENDPOINTS = Endpoints()

WRITE = needs(("Image.Write", "server"))


class Image(BaseModel):
    """An image in the server's store."""

    name: str
    digest: str
    size_bytes: int
    """Of its tree, compressed."""
    argv: list[str]
    """What it runs, where a lab runs nothing on its node."""


class WholeImage(Image):
    """An image with what it says of itself."""

    env: dict[str, str]
    cwd: str
    user: str
    config: dict[str, Any]
    """Its configuration, as the OCI's specification of images has it."""


class BrokenImage(BaseModel):
    """An image that cannot be used."""

    name: str
    wrong: str


class Images(BaseModel):
    """The server's store of images."""

    images: list[Image]
    broken: list[BrokenImage]
    registries: list[str]
    """From which images may be pulled."""


class Pull(BaseModel):
    """An image that comes from a registry."""

    pull: str
    """Its identity."""
    image: str
    person: str
    state: PullState
    what: str
    """What it does just now."""
    size_bytes: int
    """Of how much, as far as is known."""
    reason: str
    """Why it failed."""

    @classmethod
    def of(cls, pull: keeping.Pull) -> Pull:
        """As the server keeps it."""
        fields = {name: getattr(pull, name) for name in cls.model_fields if name != "pull"}
        return cls(pull=pull.identity, **fields)


class NewImage(Asked):
    """An image that is to be brought."""

    name: Annotated[str, Field(min_length=1, max_length=LENGTH_MAX)]
    """Such as `nginx:1.27` or `quay.io/frrouting/frr:10.1`."""


@ENDPOINTS.add("GET", f"{PREFIX}/images", LOGGED_IN)
async def list_images(server: Server) -> Images:
    """The images that labs may name."""
    return Images(**await server.images.ask("list"), registries=server.images.registries)


@ENDPOINTS.add("POST", f"{PREFIX}/images", WRITE, status_code=202)
async def pull_image(asked: NewImage, who: Who, server: Server) -> Pull:
    """Begins to bring an image from its registry, which has to be one of those that the server's file names.

    Who asks for an image that is just being brought gets the same pull. An `image` event tells of its states.
    """

    async def changed(pull: keeping.Pull) -> None:
        await asyncio.to_thread(_tell, server, pull)

    pull = server.images.pull(asked.name, who.name, changed, server.policy.quota(who.name).images_bytes)
    await asyncio.to_thread(_note, server, who, "image.pull", pull.image)
    return Pull.of(pull)


@ENDPOINTS.add("GET", f"{PREFIX}/images/{{image:path}}", LOGGED_IN)
async def show_image(image: str, server: Server) -> WholeImage:
    """An image, by its name or digest."""
    return WholeImage(**await server.images.ask("inspect", name=image))


@ENDPOINTS.add("DELETE", f"{PREFIX}/images/{{image:path}}", WRITE, status_code=204)
async def delete_image(image: str, who: Who, server: Server) -> None:
    """Takes a name out of the store, and frees what no name leads to; runs that go on keep what they have."""
    said = await server.images.ask("remove", name=image)
    await asyncio.to_thread(_note, server, who, "image.remove", said["name"])


@ENDPOINTS.add("GET", f"{PREFIX}/pulls", WRITE)
async def list_pulls(server: Server) -> list[Pull]:
    """Images that come from registries, and the last of those that came, since the server began."""
    return [Pull.of(pull) for pull in server.images.pulls()]


@ENDPOINTS.add("GET", f"{PREFIX}/pulls/{{pull}}", WRITE)
async def show_pull(pull: str, server: Server) -> Pull:
    """How far an image has come."""
    return Pull.of(server.images.find(pull))


@ENDPOINTS.add("DELETE", f"{PREFIX}/pulls/{{pull}}", WRITE, status_code=204)
async def cancel_pull(pull: str, who: Who, server: Server) -> None:
    """Ends a pull; layers that have come are there for the next."""
    found = server.images.find(pull)
    if found.task is not None:
        found.task.cancel()
        await asyncio.gather(found.task, return_exceptions=True)
    await asyncio.to_thread(_note, server, who, "image.cancel", found.image)


def _note(server: State, who: Caller, action: str, image: str) -> None:
    with server.store.writing() as session:
        note(session, who.name, action, "/", image=image)
        tell(session, "Image.Write", "/", "image", image=image, state="removed" if action == "image.remove" else None)


def _tell(server: State, pull: keeping.Pull) -> None:
    with server.store.writing() as session:
        tell(session, "Image.Write", "/", "image", image=pull.image, state=pull.state)
