"""Random kills of what writes to the stores of images and of saved labs: what has a name there is whole, whatever is killed.

A round does one thing (pull, import, build, gc, save), and after a random moment kills its process, one of those that it
has started (skopeo, what makes file systems), or all of them at once. Then every name in the store has to mean a whole
image, that of before or the new one; what is freed has to be all that no name leads to, and nothing else. Each thing is
done once undisturbed at first, to know how long it takes. The seed says all but the host's scheduling. `./dev
store-kills` does five hundred rounds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dilaton.images.reference import parse
from dilaton.images.store import Store
from dilaton.service.images import bring
from dilaton.service.saved.store import RESULTS, SavedLabs
from tests.conftest import PATIENCE_HOST_S, environment, held_run
from tests.host.processes import descendants
from tests.images import layer, layout
from tests.unit.images.registry import serving

PULL = """
from dilaton.service.images.bring import bring
bring(Store(), sys.argv[1], parse("new"), lambda *_: None, 1 << 30, plain_http=True)
"""
BUILD = """
from dilaton.lab.images.recipe import parse_recipe
from dilaton.service.images.build import build
build(Store(), parse_recipe({"host": [sys.argv[1]]}), parse("new"), lambda *_: None, 1 << 30, lambda _: None)
"""
COLLECT = """
from dilaton.service.images.bring import bring
bring(Store(), sys.argv[1], parse("new"), lambda *_: None, 1 << 30)
Store().remove("new")
Store().collect()
"""
SAVE = """
from dilaton.service.saved.save import save
from dilaton.service.saved.store import SavedLabs
save(SavedLabs(), Path(sys.argv[1]), "lab", lambda *_: None)
"""
HEAD = """
import sys
from pathlib import Path
from dilaton.images.reference import parse
from dilaton.images.store import Store
"""

LAB = """
name: small
nodes: {a: {disk: {model: nvme, size: 64MiB, mount: /srv}}, b: }
links: [a -- b]
run: [{on: a, exec: sleep 10}]
"""

CONTENTS_BYTES = 4 << 20


@dataclass(frozen=True)
class Thing:
    """Something that is done.

    Attributes:
        code: What does it, with its argument.
        argument: See there.
        names: What the tree of the new image has in it; empty: there is no new image.
    """

    code: str
    argument: str
    names: frozenset[str]


class Bench:
    """Stores in which something is kept, and what is done with them."""

    def __init__(self, directory: Path, things: dict[str, Thing]) -> None:
        self._home = directory / "home"
        self.images = Store(self._home / "dilaton" / "images")
        self.saved = SavedLabs(self._home / "dilaton" / "saved")
        self.things = things
        source = layout(directory / "kept", [layer(("kept", b"kept"))])
        self._kept = bring.bring(self.images, source, parse("kept"), lambda *_: None, 1 << 30)
        self._before = self._files()
        self._takes_s = dict[str, float]()
        for name in things:
            begin = time.monotonic()
            assert self._start(name).wait() == 0, name
            self._takes_s[name] = time.monotonic() - begin
            self._look(name)

    def do(self, seed: int) -> str:
        """Does a round; returns what was killed while what was done.

        Raises:
            AssertionError: A store is not as it should be.
        """
        draw = random.Random(seed)
        name, whom = draw.choice(list(self.things)), draw.choice(["it", "one of its programs", "all"])
        process = self._start(name)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(draw.uniform(0, self._takes_s[name]))
        was_over = process.poll() is not None
        below = descendants(process.pid)
        targets = {"it": [process.pid], "one of its programs": [draw.choice(below or [process.pid])]}
        for pid in targets.get(whom, [process.pid, *below]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE_HOST_S)
        self._look(name)
        return "nothing: it was over" if was_over else f"{whom}, in {name}"

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        thing = self.things[name]
        return subprocess.Popen(
            [sys.executable, "-c", HEAD + thing.code, thing.argument],
            env=environment() | {"XDG_DATA_HOME": str(self._home)},
            stderr=subprocess.DEVNULL,
        )

    def _look(self, name: str) -> None:
        """Looks whether all that has a name is whole, and whether the rest can be freed, which it then is."""
        for known, digest in self.images.names().items():
            self._check_whole(digest)
            found = self.images.find(known)
            expected = frozenset({"kept"}) if found == self._kept else self.things[name].names
            assert expected <= _names(found.root), f"{known} has not all that it should"
        assert self.images.find("kept") == self._kept
        for known in self.images.names():
            if known != str(parse("kept")):
                self.images.remove(known)
        self.images.collect(wait=True)
        assert self._files() == self._before
        for known in self.saved.names():
            with self.saved.reading(known) as tree:
                assert tree is not None and (tree / RESULTS / "plan.json").exists()

    def _check_whole(self, digest: str) -> None:
        manifest = self.images.manifest(digest)
        for blob in (digest, manifest["config"]["digest"], *(one["digest"] for one in manifest["layers"])):
            contents = (self.images.directory / "blobs/sha256" / blob.removeprefix("sha256:")).read_bytes()
            assert hashlib.sha256(contents).hexdigest() == blob.removeprefix("sha256:"), blob

    def _files(self) -> dict[str, bytes]:
        place = self.images.directory
        return {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}


def _names(root: Path) -> frozenset[str]:
    listed = subprocess.run(["unsquashfs", "-ll", "-d", "", root], check=True, capture_output=True, text=True).stdout
    return frozenset(line.rpartition("/")[2] for line in listed.splitlines())


@contextlib.contextmanager
def bench(directory: Path) -> Iterator[Bench]:
    """Stores in a directory, a registry, and a run that can be saved."""
    contents = directory / "contents"
    contents.write_bytes(os.urandom(CONTENTS_BYTES))
    archive = directory / "tree.tar"
    archive.write_bytes(layer(("first", contents.read_bytes()), ("last", b"last")))
    lab = directory / "lab"
    lab.mkdir()
    with serving(directory / "registry") as registry, held_run(lab, LAB, "1s") as (_, run):
        yield Bench(
            directory,
            {
                "pull": Thing(PULL, f"docker://{registry.name}/box:1", frozenset({"a", "b"})),
                "import": Thing(PULL.replace(", plain_http=True", ""), str(archive), frozenset({"first", "last"})),
                "build": Thing(BUILD, str(contents), frozenset({"contents"})),
                "gc": Thing(COLLECT, str(archive), frozenset({"first", "last"})),
                "save": Thing(SAVE, str(run), frozenset()),
            },
        )


def main() -> int:
    """Does COUNT rounds from seed FIRST on; the status is 1 when a store was not as it should be after one."""
    count, first = map(int, [*sys.argv[1:], *["500", "0"][len(sys.argv) - 1 :]])
    failed: list[int] = []
    killed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory, bench(Path(directory)) as made:
        for seed in range(first, first + count):
            try:
                killed[made.do(seed)] += 1
            except AssertionError as error:
                failed.append(seed)
                print(f"seed {seed}: {error}", flush=True)
            if (seed - first) % 50 == 49:
                print(f"{seed - first + 1} rounds, {len(failed)} failed", flush=True)
    for what, number in sorted(killed.items()):
        print(f"{number:5} killed {what}")
    print(f"{count} rounds, {len(failed)} failed{': ' if failed else ''}{', '.join(map(str, failed))}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
