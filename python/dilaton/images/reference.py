"""What images are called, as container engines have it: `nginx` is `docker.io/library/nginx:latest`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?P<registry>localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z0-9-]+(?=[:/])|[A-Za-z0-9.-]+(?=:[0-9]+/))"
    rf"(?P<port>:[0-9]+)?/)?"
    rf"(?P<path>{_WORD}(?:/{_WORD})*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?:@(?P<digest>sha256:[0-9a-f]{{64}}))?"
)
LENGTH_MAX = 512


@dataclass(frozen=True)
class Reference:
    """The name of an image, complete.

    Attributes:
        repository: With its registry, as `docker.io/library/nginx`.
        tag: Such as `latest`; None where there is a digest.
        digest: Of the manifest, as `sha256:…`; None: whatever has the tag.
    """

    repository: str
    tag: str | None
    digest: str | None = None

    def __str__(self) -> str:
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"

    @property
    def short(self) -> str:
        """As people write it."""
        name = str(self).removeprefix("docker.io/").removeprefix("library/")
        return name.removesuffix(":latest")


def parse(text: str) -> Reference:
    """Reads the name of an image.

    Raises:
        ValueError: It is none.
    """
    found = _REFERENCE.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        shown = text if len(text) <= LENGTH_MAX else f"{text[:40]}…"
        raise ValueError(
            f"{shown}: not the name of an image; one is such as nginx, nginx:1.27 or quay.io/frrouting/frr:10.1"
        )
    registry, path = found["registry"], found["path"]
    if registry is None:
        registry, path = "docker.io", path if "/" in path else f"library/{path}"
    tag = None if found["digest"] else found["tag"] or "latest"
    return Reference(f"{registry}{found['port'] or ''}/{path}", tag, found["digest"])
