"""Images are made from recipes, of packages and of programs of this machine, whole or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.files import find_program
from dilaton.images.reference import parse
from dilaton.images.store import Image, ImageError, Store
from dilaton.lab.errors import LabError
from dilaton.lab.images.find import tree_of
from dilaton.lab.images.of_lab import recipes_of
from dilaton.lab.images.recipe import parse_recipe
from dilaton.service.images.bring import bring
from dilaton.service.images.build import build
from tests.conftest import dilaton, environment
from tests.images import busybox, killed_at, layout, needs_programs

pytestmark = needs_programs

PLENTY = 1 << 30
needs_packages = pytest.mark.skipif(
    find_program("mmdebstrap") is None or os.geteuid() != 0,
    reason="as an ordinary user, mmdebstrap needs a whole system for its tar",
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def built(store: Store, bytes_max: int = PLENTY, tell: Callable[[str], None] = print, **recipe: Any) -> Image:
    """Builds a recipe, as image `box`."""
    return build(store, parse_recipe(recipe), parse("box"), lambda *_: None, bytes_max, tell)


def tree(image: Image) -> dict[str, tarfile.TarInfo]:
    """The members of an image's tree."""
    done = subprocess.run(["sqfs2tar", str(image.root)], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout), errors="surrogateescape") as archive:
        return {one.name: one for one in archive}


def test_programs_of_this_machine_come_with_their_libraries_at_their_places(store: Store, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "below").mkdir(parents=True)
    (data / "below/file").write_text("x")
    (data / "link").symlink_to("below/file")
    image = built(store, host=["sh", str(data)], command="sh -c true", env={"A": "1"}, cwd="/data", user="nobody")
    assert (image.argv, image.env, image.cwd, image.user) == (("sh", "-c", "true"), {"A": "1"}, "/data", "nobody")
    found = tree(image)
    shell = os.path.realpath("/bin/sh").lstrip("/")
    libc = next(name for name in found if name.endswith("/libc.so.6"))
    assert found[shell].isreg() and found[shell].mode & 0o111 and found[libc].size > 100_000
    assert {one.uid for one in found.values()} == {0}
    at = str(data).lstrip("/")
    assert found[f"{at}/below/file"].isreg() and found[f"{at}/link"].linkname == "below/file"
    assert "etc/passwd" in found and len(found) < 60, "nothing else of this machine"


def test_links_that_lead_nowhere_stay_links_and_sockets_are_left_out_and_told(store: Store, tmp_path: Path) -> None:
    for name, target in {"nowhere": "missing", "loop": "loop", "null": "/dev/null"}.items():
        (tmp_path / "data" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "data" / name).symlink_to(target)
    (tmp_path / "data/file").write_text("x")
    told: list[str] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "data/socket"))
        found = tree(built(store, tell=told.append, host=[str(tmp_path / "data")]))
    at = str(tmp_path / "data").lstrip("/")
    links = {name: found[f"{at}/{name}"].linkname for name in ("nowhere", "loop", "null")}
    assert links == {"nowhere": "missing", "loop": "loop", "null": "/dev/null"}
    assert f"{at}/file" in found and f"{at}/socket" not in found and "dev/null" not in found
    assert told == [f"/{at}/socket: left out: not a file, directory or link"]


CAPABILITY = bytes.fromhex("010000020080ff000000000000000000c0e28200")
"""Of a file with capabilities whose bytes are no text in any code."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files capabilities")
@pytest.mark.parametrize("how", ["recipe", "directory", "layers"])
def test_attributes_of_any_bytes_come_as_they_are(how: str, store: Store, tmp_path: Path) -> None:
    file, text = tmp_path / "data/file", b"\x80\xff caf\xc3\xa9 \xe2\x82"
    file.parent.mkdir()
    file.write_text("x")
    os.setxattr(file, "security.capability", CAPABILITY)
    os.setxattr(file, "user.note", text)
    if how == "recipe":
        image, at = built(store, host=[str(file)]), str(file)
    elif how == "directory":
        image, at = bring(store, str(file.parent), parse("box"), lambda *_: None, PLENTY), "/file"
    else:
        subprocess.run(
            ["tar", "--xattrs", "--xattrs-include=*", "-C", file.parent, "-cf", tmp_path / "tar", "."], check=True
        )
        image, at = bring(store, str(tmp_path / "tar"), parse("box"), lambda *_: None, PLENTY), "/file"
    shown = subprocess.run(["rdsquashfs", "-x", at, image.root], capture_output=True, text=True, check=True).stdout
    wanted = {"security.capability": CAPABILITY, "user.note": text}
    assert sorted(shown.split()) == [f"{name}=0x{value.hex().upper()}" for name, value in wanted.items()]


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"host": ["no-such-program"]}, "no-such-program: not on this machine"),
        ({"host": ["/nothing/here"]}, "/nothing/here: not on this machine"),
        ({"host": ["/dev/null"]}, "/dev/null: not a file or directory"),
        ({"host": ["sh"], "bytes_max": 1000}, "larger than an image may be"),
    ],
)
def test_what_cannot_be_built_leaves_the_store_as_it_was(recipe: dict[str, Any], words: str, store: Store) -> None:
    with pytest.raises(ImageError, match=words):
        built(store, **recipe)
    assert store.names() == {} and not list(store.directory.glob("staging/*"))


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({}, "one of the three"),
        ({"debian": {"suite": "trixie"}, "host": ["sh"]}, "one of the three"),
        ({"debian": {"suite": "--hook=x"}}, "debian.suite: --hook=x: not the name of a suite"),
        ({"debian": {"suite": "trixie", "packages": ["a,b"]}}, "a,b: not the name"),
        ({"debian": {"suite": "trixie", "mirror": "--setup-hook=x"}}, "--setup-hook=x: not a mirror"),
        ({"debian": {"suite": "trixie", "variant": "large"}}, "variant"),
        ({"host": ["../x"]}, "neither the name of a program nor an absolute path"),
        ({"host": ["sh"], "cmd": "sh"}, "cmd"),
    ],
)
def test_what_is_no_recipe_is_told(recipe: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_recipe(recipe)


def test_the_name_of_what_a_recipe_makes_follows_from_all_that_it_says() -> None:
    says: list[dict[str, Any]] = [
        {"host": ["sh"]},
        {"host": ["sh", "ls"]},
        {"host": ["sh"], "command": "sh"},
        {"debian": {"suite": "trixie"}},
        {"debian": {"suite": "trixie", "packages": ["nginx"]}},
        {"from": "tree.tar"},
        {"from": "other.tar"},
    ]
    assert len({str(parse_recipe(one).name) for one in says}) == len(says)
    assert parse_recipe({"host": "sh", "cwd": "/"}).name == parse_recipe({"host": ["sh"]}).name


def test_a_tree_beside_the_lab_becomes_an_image_that_runs_what_the_recipe_says(store: Store, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/greeting").write_text("hello")
    recipe = parse_recipe({"from": "tree", "command": "cat /greeting"}, tmp_path)
    made = build(store, recipe, recipe.name, lambda *_: None, PLENTY, print)
    assert made.argv == ("cat", "/greeting") and "greeting" in tree(made)
    missing = parse_recipe({"from": "none"}, tmp_path)
    with pytest.raises(ImageError, match=f"{tmp_path}/none: there is no such file or directory"):
        build(store, missing, missing.name, lambda *_: None, PLENTY, print)


@pytest.mark.parametrize("kind", ["oci-archive", "docker-archive", "oci"])
def test_an_image_beside_the_lab_keeps_what_it_runs(kind: str, store: Store, tmp_path: Path) -> None:
    source = layout(tmp_path / "oci", [busybox()], {"Cmd": ["id"], "WorkingDir": "/data"})
    kept, place = tmp_path / "kept.tar", tmp_path / "oci"
    if kind != "oci":
        subprocess.run(
            ["skopeo", "--insecure-policy", "copy", source, f"{kind}:{kept}"], check=True, capture_output=True
        )
        place = kept
        if kind == "docker-archive":
            # As people keep it, and so that no name of its file says what it is.
            subprocess.run(["xz", "-0", kept], check=True)
            place = kept.with_suffix(".tar.xz")
    recipe = parse_recipe(place.name, tmp_path)
    assert recipe.name == parse_recipe({"from": place.name}, tmp_path).name
    made = build(store, recipe, recipe.name, lambda *_: None, PLENTY, print)
    assert (made.argv, made.cwd) == (("id",), "/data") and "bin" in tree(made)
    told = parse_recipe({"from": place.name, "command": "sh"}, tmp_path)
    with pytest.raises(ImageError, match="an image, which says itself what it runs"):
        build(store, told, told.name, lambda *_: None, PLENTY, print)


def test_a_lab_names_files_and_images_by_what_it_writes_alone(tmp_path: Path) -> None:
    for text, path in {
        "root.tar": "root.tar",
        "some/root.tar.zst": "some/root.tar.zst",
        "./tree": "./tree",
        "../tree": "../tree",
        "/srv/tree": "/srv/tree",
        "oci-archive:frr": "frr",
        "docker-archive:frr.tar": "frr.tar",
        "nginx": None,
        "nginx:1.27": None,
        "tar": None,
        "quay.io/frrouting/frr:10.1": None,
    }.items():
        assert tree_of(text) == path, text
    (tmp_path / "nginx").mkdir()
    lab = tmp_path / "lab.yaml"
    lab.write_text(
        "name: x\nnodes:\n  image: {image: root.tar, disk: {image: disk.img}}\n  disk: {image: {from: other}}\n"
        "  b: {image: nginx}\ndefaults: {image: ./tree}\n"
    )
    assert [str(one.source) for one in recipes_of(lab)] == [
        f"OfTree(path='{tmp_path}/{name}')" for name in ("root.tar", "other", "tree")
    ]
    checked = dilaton("check", lab, env=environment() | {"XDG_DATA_HOME": str(tmp_path / "data")})
    assert checked.returncode == 2 and "lab.yaml:3:" in checked.stderr and "dilaton image build LAB" in checked.stderr


def repository(directory: Path) -> str:
    """A repository of one package, which puts a file of its own and a capability nowhere: a line of sources.list."""
    about = "Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n"
    for name, text in {"DEBIAN/control": about, "usr/share/tiny": "packed\n"}.items():
        path = directory / "tree" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    archive = directory / "tiny.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-b", directory / "tree", archive], check=True, capture_output=True
    )
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    entry = f"{about}Filename: ./tiny.deb\nSize: {archive.stat().st_size}\nSHA256: {digest}\n"
    (directory / "Packages").write_text(entry)
    return f"deb [trusted=yes] copy:{directory} ./"


@needs_packages
def test_packages_of_debian_become_an_image(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "repository"
    place.mkdir()
    debian = {"suite": "trixie", "variant": "extract", "packages": ["tiny"], "mirror": [repository(place)]}
    found = tree(built(store, debian=debian, command="cat /usr/share/tiny"))
    assert found["usr/share/tiny"].size == len("packed\n")
    assert found["dev/null"].ischr(), "devices are the guest's"
    names = store.names()
    with pytest.raises(ImageError, match="E: "):
        built(store, debian=debian | {"packages": ["missing"]})
    assert store.names() == names


def test_recipes_of_a_lab_are_found_wherever_it_has_images_and_mistakes_have_their_places(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(
        "name: x\ndefaults: {node: {image: {host: sh}}}\nnodes:\n  a: {image: {host: ls}}\n  b: {image: nginx}\n"
    )
    assert [recipe.source.label for recipe in recipes_of(lab)] == ["host", "host"]
    lab.write_text("name: x\nnodes:\n  a: {image: {host: ls, debian: {suite: sid}}}\n")
    with pytest.raises(LabError, match=r"lab.yaml:3:14: nodes\.a\.image: recipe"):
        recipes_of(lab)


def test_a_lab_asks_for_what_is_not_built_and_takes_it_then(tmp_path: Path) -> None:
    lab, variables = tmp_path / "lab.yaml", environment() | {"XDG_DATA_HOME": str(tmp_path)}
    lab.write_text("name: x\nnodes: {a: {image: {host: [sh, sleep], command: sleep 5}}}\n")
    told = dilaton("check", lab, env=variables)
    assert told.returncode == 2 and "lab.yaml:2:20: nodes.a.image: localhost/host:" in told.stderr
    assert "dilaton image build LAB" in told.stderr
    first = dilaton("image", "build", lab, env=variables)
    assert first.returncode == 0, first.stderr
    assert '"sleep"' in dilaton("plan", lab, env=variables).stdout
    assert dilaton("image", "build", lab, env=variables).stdout == first.stdout, "what is there is not built again"
    lab.write_text("name: x\nnodes: {a: {}}\n")
    assert "nothing to build" in dilaton("image", "build", lab, env=variables).stderr


def test_without_mmdebstrap_the_command_that_installs_it_is_told(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("debian: {suite: trixie}\n")
    code = (
        "import sys; from dilaton.host import files; files.find_program = lambda name: None\n"
        "from dilaton.__main__ import run; sys.argv[1:] = ['image', 'build', sys.argv[1], 'x']; run()"
    )
    variables = environment() | {"XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, recipe], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and "mmdebstrap" in done.stderr and "install" in done.stderr, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts there without a namespace of users")
def test_what_mmdebstrap_mounts_for_root_is_mounted_for_itself_alone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/mmdebstrap"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nmount -t tmpfs none {tmp_path} && echo "E: mounted" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with pytest.raises(ImageError, match="mounted"):
        built(store, debian={"suite": "trixie"})
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


BUILDS = """
import sys
from dilaton.images.reference import parse
from dilaton.images.store import Store
from dilaton.lab.images.recipe import parse_recipe
from dilaton.service.images.build import build
build(Store(), parse_recipe({"host": [sys.argv[1]]}), parse("box"), lambda *_: None, 1 << 30, print)
"""


def test_a_build_that_is_killed_leaves_nothing_that_is_used_or_stays(tmp_path: Path) -> None:
    data = tmp_path / "data/file"
    data.parent.mkdir()
    data.write_text("x")
    store = Store(tmp_path / "dilaton/images")
    for count in range(1, 1000, 5):
        done = killed_at(count, store.directory, BUILDS, data, XDG_DATA_HOME=str(tmp_path))
        names = store.names()
        if names:
            assert str(data).lstrip("/") in tree(store.find("box"))
        store.collect(wait=True)
        left = [*store.directory.glob("staging/*"), *store.directory.glob("roots/*")]
        assert len(left) == len(names), f"after step {count}"
        if done.returncode == 0:
            assert names
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        for name in names:
            store.remove(name)
    assert count > 10
