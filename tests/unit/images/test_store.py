"""The store of images: what is brought is there whole or not at all, whoever made it and whatever ends it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from dilaton.images.reference import parse
from dilaton.images.store import Image, ImageError, Store
from dilaton.service.images import bring as images
from tests.conftest import dilaton, environment
from tests.images import OWN, busybox, folder, killed_at, layer, layout, link, needs_programs

PLENTY = 1 << 30

pytestmark = needs_programs


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def bring(store: Store, source: str | Path, name: str = "box", bytes_max: int = PLENTY) -> Image:
    """Brings an image."""
    return images.bring(store, str(source), parse(name), lambda *_: None, bytes_max)


def tree(image: Image) -> dict[str, tarfile.TarInfo]:
    """The members of an image's tree, as the file system has them."""
    done = subprocess.run(["sqfs2tar", str(image.root)], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout), errors="surrogateescape") as archive:
        return {one.name: one for one in archive}


def files_of(directory: Path) -> dict[str, bytes]:
    """All files below a directory, but for locks, which have nothing in them."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("text", "complete", "short"),
    [
        ("nginx", "docker.io/library/nginx:latest", "nginx"),
        ("nginx:1.27", "docker.io/library/nginx:1.27", "nginx:1.27"),
        ("quay.io/frrouting/frr:10.1", "quay.io/frrouting/frr:10.1", "quay.io/frrouting/frr:10.1"),
        ("someone/thing", "docker.io/someone/thing:latest", "someone/thing"),
        ("localhost:5000/a/b", "localhost:5000/a/b:latest", "localhost:5000/a/b"),
        ("127.0.0.1:5000/a:1", "127.0.0.1:5000/a:1", "127.0.0.1:5000/a:1"),
        (f"a:1@sha256:{'0' * 64}", f"docker.io/library/a@sha256:{'0' * 64}", f"a@sha256:{'0' * 64}"),
    ],
)
def test_names_are_those_of_container_engines(text: str, complete: str, short: str) -> None:
    assert (str(parse(text)), parse(text).short) == (complete, short)


@pytest.mark.parametrize("text", ["", "Nginx", "a b", "../a", "a//b", "a:", "a@sha256:12", "-a", "a" * 600])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the name of an image"):
        parse(text)


def test_an_image_has_its_command_and_its_files_their_owners(store: Store, tmp_path: Path) -> None:
    config = {"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["id"], "Env": ["A=b=c"], "User": "web", "WorkingDir": "/data"}
    image = bring(store, layout(tmp_path / "oci", [busybox(), layer(("data/.wh.zero", b""))], config), "box:1")
    assert (image.name, image.argv, image.env, image.user, image.cwd) == (
        "box:1",
        ("/bin/sh", "-c", "id"),
        {"A": "b=c"},
        "web",
        "/data",
    )
    found = tree(image)
    own = found["data/own"]
    assert (own.uid, own.gid, own.mode) == (OWN, OWN, 0o640)
    assert own.pax_headers["SCHILY.xattr.user.note"] == "kept"
    assert "SCHILY.xattr.security.capability" in found["data/capable"].pax_headers
    assert "data/zero" not in found


def test_an_archive_that_was_exported_is_the_same_image(store: Store, tmp_path: Path) -> None:
    image = bring(store, layout(tmp_path / "oci", [busybox()], {"Cmd": ["id"]}))
    archive = tmp_path / "box.tar"
    images.export(store, image, f"oci-archive:{archive}")
    other = Store(tmp_path / "other")
    assert bring(other, f"oci-archive:{archive}").digest == image.digest
    docker = tmp_path / "docker.tar"
    images.export(store, image, f"docker-archive:{docker}")
    assert bring(other, f"docker-archive:{docker}", "docker").argv == ("id",)
    with pytest.raises(ImageError, match="is there already"):
        images.export(store, image, f"oci-archive:{archive}")


def test_directories_archives_and_squashfs_become_images(store: Store, tmp_path: Path) -> None:
    plain = tmp_path / "tree"
    (plain / "etc").mkdir(parents=True)
    (plain / "etc/motd").write_text("hello")
    (plain / "away").symlink_to("/etc/passwd")
    image = bring(store, plain)
    found = tree(image)
    assert (found["etc/motd"].uid, found["away"].linkname) == (0, "/etc/passwd")
    packed = tmp_path / "tree.tar.gz"
    packed.write_bytes(gzip.compress(layer(folder("etc"), ("etc/motd", b"hello"), link("away", "/etc/passwd"))))
    assert set(tree(bring(store, packed))) == {"etc", "etc/motd", "away"}
    # More than a reader has in memory at a time, which a program that unpacks it has to get all the same.
    large = os.urandom(100_000)
    for suffix, program in {"xz": "xz", "bz2": "bzip2", "zst": "zstd"}.items():
        packed = tmp_path / f"large.tar.{suffix}"
        with packed.open("wb") as file:
            subprocess.run([program, "-c"], input=layer(("large", large)), stdout=file, check=True)
        assert tree(bring(store, packed, f"large:{suffix}"))["large"].size == len(large)
    assert set(tree(bring(store, image.root))) == {"etc", "etc/motd", "away"}


def test_an_ext4_has_its_owners_devices_and_attributes_in_the_image(store: Store, tmp_path: Path) -> None:
    disk, script = tmp_path / "root.ext4", tmp_path / "script"
    small = tmp_path / "small"
    small.write_text("mine\n")
    subprocess.run(["mke2fs", "-q", "-t", "ext4", disk, "12345k"], check=True)
    script.write_text(
        f"mkdir data\nwrite {small} data/own\nsymlink away /etc/passwd\nmknod zero c 1 5\n"
        f"set_inode_field data/own uid {OWN}\nset_inode_field data/own gid {OWN}\nset_inode_field data/own mode 0104750\n"
        "ea_set data/own user.note kept\n"
    )
    subprocess.run(["debugfs", "-w", "-f", script, disk], check=True, capture_output=True)
    before = disk.read_bytes()
    found = tree(bring(store, disk))
    assert disk.read_bytes() == before
    own = found["data/own"]
    assert (own.uid, own.gid, own.mode, own.pax_headers.get("SCHILY.xattr.user.note")) == (OWN, OWN, 0o4750, "kept")
    assert found["away"].linkname == "/etc/passwd" and (found["zero"].devmajor, found["zero"].devminor) == (1, 5)
    assert not list(store.directory.glob("staging/*"))


@pytest.mark.parametrize(
    ("place", "magic", "words"),
    [
        (1080, b"\x53\xef", "an ext4 file system that a guest does not read"),
        (1024, b"\xe2\xe1\xf5\xe0", "an erofs file system that a guest does not read"),
        (0, b"", "nothing in it"),
    ],
)
def test_what_begins_like_an_archive_of_nothing_is_not_taken_for_one(
    store: Store, tmp_path: Path, place: int, magic: bytes, words: str
) -> None:
    (tmp_path / "x").write_bytes((bytes(place) + magic).ljust(1 << 16, b"\0"))
    with pytest.raises(ImageError, match=words):
        bring(store, tmp_path / "x")
    assert store.names() == {}


def test_gc_frees_what_has_no_name_and_nothing_else(store: Store, tmp_path: Path) -> None:
    base = layer(("a", b"common"))
    one = bring(store, layout(tmp_path / "oci", [base]), "one")
    kept = files_of(store.directory)
    bring(store, layout(tmp_path / "oci", [base, layer(("b", b"more"))]), "two")
    (store.directory / "staging" / "left").mkdir()
    (store.directory / "staging" / "left" / "half").write_bytes(b"half")
    assert store.remove("two") == "docker.io/library/two:latest"
    assert store.collect() > 0
    assert files_of(store.directory) == kept
    assert store.collect() == 0
    assert store.find("one") == one
    with pytest.raises(ImageError, match="two: not in the store"):
        store.find("two")


def test_nothing_is_freed_while_something_is_added(store: Store, tmp_path: Path) -> None:
    bring(store, layout(tmp_path / "oci", [layer(("a", b""))]))
    with store.adding(), pytest.raises(ImageError, match="something is being added"):
        store.collect()


def damaged(source: str) -> None:
    """Changes the layer of a layout."""
    blobs = sorted(Path(source.removeprefix("oci:"), "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    raw = bytearray(blobs[-1].read_bytes())
    raw[600] ^= 1
    blobs[-1].write_bytes(raw)


@pytest.mark.parametrize(
    "how",
    [
        "architecture",
        "digest",
        "climbs",
        "link",
        "bomb",
        "bomb that says it is an image",
        "no archive",
        "missing",
        "other diff",
    ],
)
def test_what_is_not_as_it_should_be_leaves_the_store_as_it_was(how: str, store: Store, tmp_path: Path) -> None:
    before = bring(store, layout(tmp_path / "first", [layer(("a", b"before"))]))
    outside = set(tmp_path.iterdir()) | {tmp_path / "oci", tmp_path / "file"}
    good = layer(("a", b"x" * 2000))
    source, words = layout(tmp_path / "oci", [good]), ""
    match how:
        case "architecture":
            source, words = (
                layout(tmp_path / "oci", [good], architecture="arm64"),
                "for linux/arm64; guests run linux/amd64",
            )
        case "digest":
            damaged(source)
            words = "(?i)digest"
        case "climbs":
            source, words = layout(tmp_path / "oci", [layer(("../../out", b""))]), "leads out of the image"
        case "link":
            source, words = layout(tmp_path / "oci", [layer(link("a", "/b", hard=True))]), "no file of the image"
        case "bomb":
            packed = tmp_path / "file"
            packed.write_bytes(gzip.compress(layer(("zeros", bytes(3 << 20)))))
            source, words = str(packed), "larger than an image may be"
        case "bomb that says it is an image":
            packed = tmp_path / "file"
            packed.write_bytes(gzip.compress(layer(("blobs", bytes(3 << 20)), ("manifest.json", b"[]"))))
            source, words = str(packed), "larger than an image may be"
        case "no archive":
            (tmp_path / "file").write_bytes(b"not an archive" * 100)
            source, words = str(tmp_path / "file"), "not a whole tar archive"
        case "missing":
            source, words = str(tmp_path / "nowhere"), "no such file or directory; an image comes from"
        case "other diff":
            source, words = _with_other_diff(tmp_path / "oci", good), "not what the configuration says"
    with pytest.raises(ImageError, match=words):
        bring(store, source, bytes_max=1 << 20)
    assert store.find("box") == before
    assert set(tmp_path.iterdir()) <= outside
    assert list((store.directory / "staging").iterdir()) == []
    store.collect()
    assert store.find("box") == before
    assert len(list((store.directory / "roots").iterdir())) == 1


def _with_other_diff(directory: Path, contents: bytes) -> str:
    """A layout whose configuration says something else of its layer."""
    source = layout(directory, [contents])
    blobs = directory / "blobs/sha256"
    index = json.loads((directory / "index.json").read_text())
    manifest = json.loads((blobs / index["manifests"][0]["digest"][7:]).read_text())
    config = json.loads((blobs / manifest["config"]["digest"][7:]).read_text())
    config["rootfs"]["diff_ids"] = [f"sha256:{'0' * 64}"]
    for document, place in ((config, manifest["config"]), (manifest, index["manifests"][0])):
        raw = json.dumps(document).encode()
        digits = hashlib.sha256(raw).hexdigest()
        (blobs / digits).write_bytes(raw)
        place |= {"digest": f"sha256:{digits}", "size": len(raw)}
    (directory / "index.json").write_text(json.dumps(index))
    return source


def test_a_blob_that_was_damaged_later_is_noticed(store: Store, tmp_path: Path) -> None:
    image = bring(store, layout(tmp_path / "oci", [layer(("a", b""))]))
    store.blob(image.digest).write_bytes(b"{}")
    with pytest.raises(ImageError, match="damaged"):
        store.find("box")
    with pytest.raises(ImageError, match="damaged"):
        store.collect()


BRINGS = """
from dilaton.images.reference import parse
from dilaton.images.store import Store
from dilaton.service.images import bring as images
images.bring(Store(), sys.argv[1], parse(sys.argv[2]), lambda *_: None, 1 << 30)
Store().remove("box")
Store().collect()
print("through")
"""


def test_a_kill_at_any_step_leaves_the_store_consistent(tmp_path: Path) -> None:
    store = Store(tmp_path / "dilaton" / "images")
    kept = bring(store, layout(tmp_path / "first", [layer(("a", b"kept"))]), "kept")
    store.collect()
    before = files_of(store.directory)
    plain = tmp_path / "tree.tar"
    plain.write_bytes(layer(("b", b"added")))
    for count in range(1, 1000):
        done = killed_at(count, store.directory, BRINGS, plain, "box", XDG_DATA_HOME=str(tmp_path))
        names = store.names()
        assert store.find("kept") == kept
        if "docker.io/library/box:latest" in names:
            assert set(tree(store.find("box"))) == {"b"}
            store.remove("box")
        store.collect(wait=True)
        assert files_of(store.directory).keys() == before.keys(), f"after step {count}"
        if done.returncode == 0:
            assert done.stdout == "through\n"
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert count > 20


def test_the_command_line_lists_what_is_there(tmp_path: Path) -> None:
    variables = environment() | {"XDG_DATA_HOME": str(tmp_path), "COLUMNS": "200"}
    source = layout(tmp_path / "oci", [busybox()], {"Cmd": ["/bin/httpd", "-f"]})
    brought = dilaton("image", "import", source, "web:1", env=variables)
    assert brought.returncode == 0
    name, digest = brought.stdout.split()
    assert (name, len(digest)) == ("web:1", 71)
    listed = dilaton("image", "list", env=variables).stdout
    assert "web:1" in listed and digest[7:19] in listed and "/bin/httpd -f" in listed
    assert json.loads(dilaton("image", "inspect", digest[7:19], env=variables).stdout)["digest"] == digest
    assert dilaton("image", "remove", "web:2", env=variables).returncode == 2
    assert dilaton("image", "import", str(tmp_path / "no"), "x", env=variables).returncode == 1
    assert dilaton("image", "import", source, "X Y", env=variables).returncode == 2
    assert dilaton("image", "remove", "web:1", env=variables).returncode == 0
    assert dilaton("image", "gc", env=variables).stdout.endswith("MB freed\n")
    assert dilaton("image", "list", env=variables).stdout.splitlines()[1:] == []
