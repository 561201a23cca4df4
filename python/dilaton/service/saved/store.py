"""Where saved labs are: as templates (`templates/store.py`), each a tree of this form.

```text
~/.local/share/dilaton/saved/trees/DIGEST/     ($XDG_DATA_HOME)
├── lab/             the lab, and what is beside it
├── written/NODE.tar what a node had written in memory, as the agent packs it
├── volumes/NAME.tar what was written to a volume, packed likewise
├── disks/NODE       the contents of a node's disk
├── results/         the run directory of the run, as it was then
└── saved.json       where the run was, and what counts instead of what the lab says
```
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Collection
from pathlib import Path

from pydantic import ConfigDict

from dilaton.host import sparse
from dilaton.images.store import SHORT_DIGEST, Store
from dilaton.plan.links.queues import Part
from dilaton.templates.store import TemplateError, Templates, digest_of

LAB, WRITTEN, VOLUMES, DISKS, RESULTS, ABOUT = "lab", "written", "volumes", "disks", "results", "saved.json"

IMAGES = "localhost/saved"
"""Images that saved labs of the user need have this name, with their digest as tag, so that they stay in the store."""


class About(Part):
    """What a saved lab says of itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lab: str
    """Its name."""
    run: str
    """The directory of the run."""
    virtual_s: float
    """Where that was, since its virtual 0."""
    settings: list[str]
    """What counts instead of what the lab says, as PATH=VALUE."""
    images: list[str]
    """The digests of images that its nodes have."""
    person: str = ""
    """Who has saved it, of a server; empty: whose the store is."""


class SavedLabs(Templates):
    """The saved labs of a user, or those in a directory of their own."""

    what, place, listing = "lab", "saved", "dilaton saved list"

    @property
    def images(self) -> str:
        """What images are called that these need, so that nobody else's saved labs let go of them."""
        if self.directory == type(self)().directory:
            return IMAGES
        return f"{IMAGES}-{hashlib.sha256(os.fsencode(self.directory.resolve())).hexdigest()[:SHORT_DIGEST]}"

    def image_name(self, image: str) -> str:
        """What an image of that digest is called as long as one of these needs it."""
        return f"{self.images}:{image.partition(':')[2][:SHORT_DIGEST]}"

    def digest_of(self, tree: Path) -> str:
        """See `Templates`; disks are large, and mostly empty."""
        return digest_of(tree, sparse.sum_of)

    def taken_bytes(self, person: str = "", *, without: str = "", before: Collection[str] = ()) -> int:
        """The room that all of a person's take; what two have alike is there once.

        Args:
            person: Whose; empty: whose the store is.
            without: One that may be there and does not count.
            before: The names of those that are theirs as well if they do not say whose they are.
        """
        theirs = {
            digest
            for name, digest in self.names().items()
            if name != without and self._says_whose(digest) in ({person, ""} if name in before else {person})
        }
        return sum(sparse.taken_bytes(self.directory / "trees" / digest) for digest in theirs)

    def _says_whose(self, digest: str) -> str | None:
        """Who has saved one; None: nobody can tell, and the list names it."""
        with contextlib.suppress(TemplateError):
            return about(self.directory / "trees" / digest).person
        return None

    def remove(self, name: str) -> None:
        """See `Templates`."""
        super().remove(name)
        self.forget_images(Store())

    def forget_images(self, images: Store) -> None:
        """Takes out of the store of images the names of those that no saved lab needs any more."""
        if not any(name.startswith(f"{self.images}:") for name in images.names()):
            return
        # Not while a lab is saved, whose images have their names first.
        with self._locked(fcntl.LOCK_EX):
            try:
                trees = [about(self.directory / "trees" / digest) for digest in self.names().values()]
            except TemplateError:
                # It cannot be told what it needs.
                return
            needed = {self.image_name(image) for tree in trees for image in tree.images}
            for name in set(images.names()) - needed:
                if name.startswith(f"{self.images}:"):
                    images.remove(name)


def about(tree: Path) -> About:
    """What a saved lab says of itself.

    Raises:
        TemplateError: It is damaged.
    """
    try:
        return About.model_validate_json((tree / ABOUT).read_text())
    except (OSError, ValueError) as error:
        raise TemplateError(f"damaged: {tree / ABOUT} cannot be read; save it again, or remove it") from error
