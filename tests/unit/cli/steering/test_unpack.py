"""Whatever archive a node sends, nothing is made but plain files below the place of the copy."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from dilaton.cli.steering.unpack import Unpacked, stays_inside, unpack
from dilaton.images.archive import HEADER_BYTES_MAX

FILE, LINK, HARD, DIRECTORY = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


def archive(*members: tuple[str, dict[str, Any]], contents: bytes = b"new") -> io.BytesIO:
    """An archive of members with these fields."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, fields in members:
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            if fields.get("type", FILE) == FILE:
                member.size = len(contents)
            for field, value in fields.items():
                setattr(member, field, value)
            tar.addfile(member, io.BytesIO(contents))
    written.seek(0)
    return written


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Where things are copied, beside what they must not reach."""
    (tmp_path / "secret").write_text("old")
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def names_below(path: Path) -> set[str]:
    """What is there."""
    return {str(found.relative_to(path)) for found in path.rglob("*")}


HOSTILE = {
    "an absolute name": [("/top/x", {})],
    "an absolute name elsewhere": [("/etc/dilaton-escaped", {})],
    "a name that climbs": [("top/../../secret", {})],
    "a name that was not asked for": [(".bashrc", {})],
    "an absolute link": [("top/l", {"type": LINK, "linkname": "/etc/passwd"})],
    "a link that climbs": [("top/l", {"type": LINK, "linkname": "../../secret"})],
    "a link beside the copy": [("top/l", {"type": LINK, "linkname": "../other"})],
    "a link that climbs behind a name": [("top/l", {"type": LINK, "linkname": "a/../../../secret"})],
    "a copy that is a link": [("top", {"type": LINK, "linkname": "secret"})],
    "a hard link to a file outside": [("top/h", {"type": HARD, "linkname": "../secret"})],
    "a hard link to an absolute name": [("top/h", {"type": HARD, "linkname": "/etc/passwd"})],
    "a hard link to a file that was there": [("top/h", {"type": HARD, "linkname": "top/mine"})],
    "a block device": [("top/d", {"type": tarfile.BLKTYPE, "devmajor": 254})],
    "a character device": [("top/d", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})],
    "a named pipe": [("top/p", {"type": tarfile.FIFOTYPE})],
    "a file where a directory is": [("top/kept", {})],
    "a file below a link": [("top/outwards/secret", {})],
    "a directory where a link is": [("top/outwards", {"type": DIRECTORY})],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_plain_file_of_the_copy_is_refused_by_name_and_the_rest_goes_on(
    here: Path, members: list[tuple[str, dict[str, Any]]]
) -> None:
    (here / "top" / "kept").mkdir(parents=True)
    (here / "top" / "mine").write_text("mine")
    (here / "top" / "outwards").symlink_to("../..")
    before = names_below(here)
    unpacked = unpack(archive(*members, ("top/good", {})), str(here), "top")
    assert (unpacked.made, unpacked.refused) == (1, 1)
    assert unpacked.reasons[0].startswith(f"{members[0][0]}: ")
    assert names_below(here) == before | {"top/good"}
    assert (here.parent / "secret").read_text() == "old"
    assert (here.parent / "secret").stat().st_nlink == 1
    assert names_below(here.parent) == {f"here/{name}" for name in names_below(here)} | {"here", "secret"}


def test_no_chain_of_links_leads_out(here: Path) -> None:
    """Each stays inside by itself; together they would climb from where the first leads."""
    links = [
        ("top/a/b/down", {"type": LINK, "linkname": "../.."}),
        ("top/a/out", {"type": LINK, "linkname": "b/down/../../secret"}),
        ("top/a/out/secret", {}),
        ("top/a/b/down/x", {}),
    ]
    unpacked = unpack(archive(*links), str(here), "top")
    assert [reason.split(":")[0] for reason in unpacked.reasons] == ["top/a/out", "top/a/b/down/x"]
    assert (here.parent / "secret").read_text() == "old"
    for path in here.rglob("*"):
        assert path.resolve().is_relative_to(here)


def test_permissions_have_no_special_bits_and_the_owner_is_the_caller(here: Path) -> None:
    members = [
        ("top", {"type": DIRECTORY, "mode": 0o7777, "uid": 4711}),
        ("top/s", {"mode": 0o6755, "uid": 4711, "gid": 4711, "mtime": 1000}),
    ]
    before = os.umask(0o022)
    try:
        unpack(archive(*members), str(here), "top")
        assert stat.S_IMODE((here / "top").stat().st_mode) == 0o755
        status = (here / "top" / "s").stat()
        assert stat.S_IMODE(status.st_mode) == 0o755
        assert (status.st_uid, status.st_mtime) == (os.geteuid(), 1000)
        unpack(archive(*members), str(here), "top", preserve=True)
        assert stat.S_IMODE((here / "top" / "s").stat().st_mode) == 0o6755
    finally:
        os.umask(before)


def test_more_is_kept_where_that_is_asked_for_but_never_a_device(here: Path) -> None:
    members = [
        ("top/p", {"type": tarfile.FIFOTYPE}),
        ("top/l", {"type": LINK, "linkname": "/etc/passwd"}),
        ("top/d", {"type": tarfile.BLKTYPE}),
        ("top/h", {"type": HARD, "linkname": "../secret"}),
    ]
    unpacked = unpack(archive(*members), str(here), "top", preserve=True)
    assert unpacked == Unpacked(2, 2, unpacked.reasons)
    assert unpacked.reasons[0] == "top/d: a device node"
    assert stat.S_ISFIFO((here / "top" / "p").lstat().st_mode)
    assert (here / "top" / "l").readlink() == Path("/etc/passwd")


def test_a_file_takes_the_place_of_a_link_and_is_not_written_through_it(here: Path) -> None:
    (here / "top").symlink_to("../secret")
    assert unpack(archive(("top", {})), str(here), "top").made == 1
    assert not (here / "top").is_symlink() and (here / "top").read_text() == "new"
    assert (here.parent / "secret").read_text() == "old"


def test_links_among_the_files_of_a_copy_stay_links(here: Path) -> None:
    members = [
        ("top/a", {}),
        ("top/h", {"type": HARD, "linkname": "top/a"}),
        ("top/d/s", {"type": LINK, "linkname": "../a"}),
        ("top/closed", {"type": DIRECTORY, "mode": 0o500}),
        ("top/closed/x", {}),
    ]
    assert unpack(archive(*members), str(here), "top").refused == 0
    assert (here / "top/a").stat().st_ino == (here / "top/h").stat().st_ino
    assert (here / "top/d/s").read_text() == "new"
    (here / "top/closed").chmod(0o700)
    assert (here / "top/closed/x").read_text() == "new"


@pytest.mark.parametrize("size", [-512, 1 << 60])
def test_an_archive_with_a_file_that_cannot_have_room_is_given_up(here: Path, size: int) -> None:
    huge = tarfile.TarInfo("top/huge")
    huge.size = size
    with pytest.raises(tarfile.ReadError, match="are free here"):
        unpack(io.BytesIO(huge.tobuf(tarfile.GNU_FORMAT) + bytes(2048)), str(here), "top")
    assert not (here / "top").exists()


@pytest.mark.parametrize("size", [HEADER_BYTES_MAX + 1, 1 << 33])
def test_a_name_that_does_not_fit_into_memory_is_not_read(here: Path, size: int) -> None:
    long = tarfile.TarInfo("././@LongLink")
    long.type, long.size = tarfile.GNUTYPE_LONGNAME, size
    header = long.tobuf(tarfile.GNU_FORMAT)

    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            assert self.given < 4 * HEADER_BYTES_MAX, "it reads on and on"
            begun, self.rest = self.__dict__.get("rest", header)[:size], self.__dict__.get("rest", header)[size:]
            return begun.ljust(size, b"x")

    with pytest.raises(tarfile.ReadError, match="at most"):
        unpack(Endless(), str(here), "top")  # type: ignore[arg-type]


def test_a_sparse_file_is_not_read(here: Path) -> None:
    sparse = tarfile.TarInfo("top/bomb")
    sparse.type = tarfile.GNUTYPE_SPARSE
    with pytest.raises(tarfile.ReadError, match="sparse"):
        unpack(io.BytesIO(sparse.tobuf(tarfile.GNU_FORMAT) + bytes(1024)), str(here), "top")
    pax = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 20)}
    unpacked = unpack(archive(("top/bomb", {"pax_headers": pax})), str(here), "top")
    assert unpacked.reasons == ["top/bomb: a sparse file"]
    assert not (here / "top").exists()


@pytest.mark.parametrize("garbage", [b"", b"not an archive" * 100, bytes(100)])
def test_what_is_no_archive_is_said(here: Path, garbage: bytes) -> None:
    with pytest.raises(tarfile.TarError):
        unpack(io.BytesIO(garbage), str(here), "top")


@pytest.mark.parametrize(
    ("place", "target", "inside"),
    [
        (("l",), "a", True),
        (("l",), "./a//b/.", True),
        (("l",), "..", False),
        (("d", "l"), "..", True),
        (("d", "l"), "../a/b", True),
        (("d", "l"), "../..", False),
        (("d", "l"), "a/..", False),
        (("l",), "/a", False),
        (("l",), "", False),
        ((), "a", False),
    ],
)
def test_a_link_stays_inside_if_it_climbs_at_its_beginning_and_not_too_far(
    place: tuple[str, ...], target: str, inside: bool
) -> None:
    assert stays_inside(place, target) == inside
