"""Layers become one tree, as a file system would have it; what cannot be part of one is refused."""

from __future__ import annotations

import io
import tarfile

import pytest

from dilaton.images.archive import HEADER_BYTES_MAX
from dilaton.images.layers import LayerError, Tree
from tests.images import folder, layer, link, member

PLENTY = 1 << 30


def merged(*layers: bytes, bytes_max: int = PLENTY) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    """The members of the tree of these layers, with their contents."""
    tree, out = Tree(bytes_max), io.BytesIO()
    for one in layers:
        tree.add(io.BytesIO(one))
    tree.write(out)
    out.seek(0)
    with tarfile.open(fileobj=out, errors="surrogateescape") as archive:
        found = {}
        for entry in archive:
            stream = archive.extractfile(entry) if entry.isreg() else None
            found[entry.name] = entry, stream.read() if stream else b""
        return found


def names(*layers: bytes) -> set[str]:
    """The names in the tree of these layers, without those of directories that nobody named."""
    return {name for name, (one, _) in merged(*layers).items() if not one.isdir()}


def test_a_file_of_an_upper_layer_replaces_that_of_a_lower_one() -> None:
    found = merged(layer(("a", b"old"), ("b", b"kept")), layer((member("a", uid=7), b"new")))
    assert (found["a"][1], found["a"][0].uid, found["b"][1]) == (b"new", 7, b"kept")


def test_whiteouts_take_away_what_is_below_and_nothing_of_their_own_layer() -> None:
    lower = layer(("etc/a", b""), ("etc/b", b""), ("var/deep/c", b""), ("opt/x/old", b""))
    upper = layer(("etc/.wh.a", b""), ("var/.wh.deep", b""), ("opt/x/new", b""), ("opt/x/.wh..wh..opq", b""))
    assert names(lower, upper) == {"etc/b", "opt/x/new"}
    assert names(layer(("a", b"old")), layer(("a", b"new"), (".wh.a", b""))) == {"a"}


def test_a_directory_in_the_place_of_a_file_and_the_other_way_round() -> None:
    assert names(layer(("a", b"")), layer(folder("a"), ("a/b", b""))) == {"a/b"}
    assert names(layer(("a/b", b"")), layer(("a", b""))) == {"a"}
    found = merged(layer(folder("a", mode=0o700), ("a/b", b"")), layer(folder("a", mode=0o1777)))
    assert (found["a"][0].mode, "a/b" in found) == (0o1777, True)


def test_a_name_may_pass_a_link_of_a_lower_layer_and_stays_inside() -> None:
    lower = layer(folder("usr/lib"), link("lib", "/usr/lib"), link("up", "../../../usr"))
    assert names(lower, layer(("lib/x", b""), ("up/y", b""))) == {"lib", "up", "usr/lib/x", "usr/y"}


def test_a_hard_link_is_one_more_name_of_a_file_that_outlives_the_first() -> None:
    found = merged(layer(("a", b"contents"), link("b", "a", hard=True)))
    assert found["b"][0].islnk() and found["b"][0].linkname == "a"
    found = merged(layer(("a", b"contents"), link("b", "/a", hard=True)), layer((".wh.a", b"")))
    assert (set(found) - {"."}, found["b"][1]) == ({"b"}, b"contents")


def test_owners_devices_capabilities_and_odd_names_survive() -> None:
    odd = "odd\n\udcff " + "x" * 200
    attributes = {
        "SCHILY.xattr.security.capability": "\x01\x00\udcff",
        "SCHILY.xattr.user.note": "kept",
        "SCHILY.xattr.trusted.overlay.opaque": "y",
    }
    found = merged(
        layer(
            member(odd, uid=3_000_000, gid=5, mode=0o4755, pax_headers=attributes),
            member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
            member("pipe", type=tarfile.FIFOTYPE),
        )
    )
    one = found[odd][0]
    assert (one.uid, one.gid, one.mode) == (3_000_000, 5, 0o4755)
    kept = {name: value for name, value in one.pax_headers.items() if name.startswith("SCHILY")}
    assert kept == {name: value for name, value in attributes.items() if "trusted" not in name}
    assert (found["null"][0].devmajor, found["null"][0].devminor, found["pipe"][0].isfifo()) == (1, 3, True)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([("../out", b"")], r"\.\./out: leads out of the image by \.\."),
        ([("a/../../out", b"")], "leads out"),
        ([link("a", "../../etc/passwd", hard=True)], "leads out"),
        ([link("a", "/etc/passwd", hard=True)], "a: etc on the way there is no directory"),
        ([link("a", "b", hard=True)], "which is no file of the image"),
        ([link("loop", "loop"), ("loop/x", b"")], "loop on the way there is no directory"),
        ([("a", b""), ("a/b", b"")], "a on the way there is no directory"),
        ([("d/" * 300 + "x", b"")], "below more than 256 directories"),
        ([member("a", uid=-1)], "no user has the number"),
        ([member(".", type=tarfile.FIFOTYPE)], "the root of a tree is a directory"),
    ],
)
def test_what_cannot_be_part_of_a_tree_is_refused_by_name(entries: list[tarfile.TarInfo], words: str) -> None:
    with pytest.raises(LayerError, match=words):
        merged(layer(*entries))


def test_files_that_are_larger_together_than_they_may_be_are_refused() -> None:
    with pytest.raises(LayerError, match="b: with this the files are larger"):
        merged(layer(("a", b"12345"), ("b", b"12345")), bytes_max=9)


@pytest.mark.parametrize("cut", [700, 1300])
def test_an_archive_that_is_not_whole_is_refused(cut: int) -> None:
    whole = layer(("a", b"1" * 600), ("b", b"2"))
    with pytest.raises(LayerError, match="layer 1: "):
        merged(whole[:cut])


def test_a_header_that_would_take_much_memory_is_refused() -> None:
    with pytest.raises(LayerError, match="at most 1048576 are read"):
        merged(layer(member("a" * (HEADER_BYTES_MAX + 1))))
