"""Tar archives: those that anybody may have made, with bounds on what a header takes of the reader's memory; and
what files of this machine have beside their contents, as a header has it.
"""

from __future__ import annotations

import contextlib
import os
import tarfile

HEADER_BYTES_MAX = 1 << 20
"""The longest header, with long names and other attributes; it is read into memory."""

ATTRIBUTE = "SCHILY.xattr."
"""How extended attributes are called in a header."""


def attributes_of(path: str | os.PathLike[str]) -> dict[str, str]:
    """A file's capabilities, and attributes that users gave it, as a header has them.

    A value is bytes, and tarfile writes text: it makes bytes of it as Python does of the names of files.
    """
    found = {}
    # There are file systems without attributes, and attributes go.
    with contextlib.suppress(OSError):
        for name in os.listxattr(path, follow_symlinks=False):
            if name.startswith("user.") or name == "security.capability":
                value = os.getxattr(path, name, follow_symlinks=False)
                found[ATTRIBUTE + name] = value.decode("utf-8", "surrogateescape")
    return found


class BoundedMember(tarfile.TarInfo):
    """A member whose attributes fit into memory."""

    _LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE)

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """What tarfile has for subclasses to override; it calls it for every header."""
        if self.type in (*self._LONG, tarfile.SOLARIS_XHDTYPE) and self.size > HEADER_BYTES_MAX:
            raise tarfile.ReadError(
                f"a name or attribute has {self.size} bytes, and at most {HEADER_BYTES_MAX} are read"
            )
        if self.type == tarfile.GNUTYPE_SPARSE:
            self._refuse_map()
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return member

    def _proc_gnusparse_10(self, *_: object) -> None:
        self._refuse_map()

    def _refuse_map(self) -> None:
        raise tarfile.ReadError(f"{self.name}: a sparse file, whose map may be of any size, cannot be read")
