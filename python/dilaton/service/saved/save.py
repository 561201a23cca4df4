"""Saving a run that goes on, for a later one: `dilaton save RUN NAME`.

Everything is read at one instant, while the run stands still (`run/steering/saving.py`), into a directory that becomes
the saved lab in one step at the end. What nodes have in memory is packed in them (`crates/agent/src/node/changes.rs`).
Files of disks are copied as they are: as after a power cut, that is. So what file systems have not written yet they
write before, where the clock still goes.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dilaton.host.sparse import copy_sparse, taken_bytes
from dilaton.images.reference import parse
from dilaton.images.store import Store
from dilaton.lab.beside.lock import read_lock, write_lock
from dilaton.lab.errors import LabError
from dilaton.plan.model import Plan
from dilaton.run.control.answers import CLOCK_SHOW, FAULT_LIST, SAVE_OPEN, SHOW, Saving
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client, result_of, take_over
from dilaton.run.control.session_client import attended, reached
from dilaton.run.files.directory import LAB_FILE, PLAN_FILE
from dilaton.run.files.outputs import read_output
from dilaton.service.images.programs import WATCH_S
from dilaton.service.images.roots import Progress
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides
from dilaton.service.saved.store import ABOUT, DISKS, LAB, RESULTS, VOLUMES, WRITTEN, About, SavedLabs
from dilaton.templates.store import TemplateError, copy_tree

PROGRAM = "/proc/1/exe"
"""The agent's program, in every node."""


@dataclass(frozen=True)
class Share:
    """Whose a saved lab will be, and how much room all that is theirs may take.

    Attributes:
        person: Who saves, at a server; empty: whose the store is.
        bytes_max: How much all of theirs may take then; None: as much as there is.
        elsewhere_bytes: What of theirs is in other stores.
        before: The names of what is theirs here, and does not say so.
    """

    person: str = ""
    bytes_max: int | None = None
    elsewhere_bytes: int = 0
    before: Sequence[str] = ()


def save(
    store: SavedLabs, run_dir: Path, name: str, progress: Progress, share: Share = Share()
) -> tuple[About, list[str]]:
    """Saves a run: what was saved, and what of the run is not in it, a sentence each.

    Args:
        store: Where.
        run_dir: The run.
        name: What the saved lab will be called; another one of that name is replaced.
        progress: Is told of it.
        share: Whose it will be, and what may be theirs.

    Raises:
        TemplateError: It cannot be saved, or takes more room than that.
        ControlError: No run goes on there, or it ended meanwhile.
        OSError: Something cannot be read or written.
    """
    plan = Plan.model_validate_json(read_output(run_dir / PLAN_FILE))
    images, kept = Store(), list[About]()
    left_out = _left_out(run_dir)

    def fill(tree: Path) -> None:
        # Nobody else saves here meanwhile.
        here = store.taken_bytes(share.person, without=name, before=share.before)
        room = Room(share.bytes_max, share.elsewhere_bytes + here)
        left_out.extend(_write_disks(run_dir, plan))
        kept.append(_fill(store, tree, run_dir, plan, room.told(progress), share.person))
        room.check(taken_bytes(tree))
        for image in kept[0].images:
            images.name(parse(store.image_name(image)), image)

    try:
        store.save(name, fill)
    finally:
        store.forget_images(images)
    return kept[0], left_out


class Room:
    """What saved labs of somebody may take, all together."""

    def __init__(self, bytes_max: int | None, taken: int) -> None:
        """`taken` is what others have; without `bytes_max` there is room for anything."""
        self._bytes_max, self._taken = bytes_max, taken
        self._coming: dict[str, int] = {}
        self.check(0)

    def told(self, progress: Progress) -> Progress:
        """What tells of progress, and ends what has come to be too large while it comes."""

        def tell(what: str, size_bytes: int) -> None:
            self._coming[what] = size_bytes
            self.check(sum(self._coming.values()))
            progress(what, size_bytes)

        return tell

    def check(self, size_bytes: int) -> None:
        """Looks whether so much has room.

        Raises:
            TemplateError: It has not.
        """
        if self._bytes_max is not None and self._taken + size_bytes >= self._bytes_max:
            raise TemplateError(
                f"no room: your saved labs may take {self._bytes_max} bytes, and others take {self._taken} of them; "
                "remove one, or have somebody with more save it"
            )


def _write_disks(run_dir: Path, plan: Plan) -> Iterator[str]:
    """Has file systems write to their disks what they have in memory, which takes virtual time; why not, if so."""
    nodes = {node.guest: node.name for node in plan.nodes if node.disk is not None}
    with Client(run_dir) as client:
        is_held = nodes and client.request(CLOCK_SHOW)["held"]
    if is_held:
        yield (
            "its clock was held before, so disks are as after a power cut: what programs wrote and did not sync may be "
            "missing; release the clock, and save again, to have all of it"
        )
        return
    for node in nodes.values():
        asyncio.run(_attended(run_dir, node, ("flush",), None))


def _left_out(run_dir: Path) -> list[str]:
    with Client(run_dir) as client:
        faults = client.request(FAULT_LIST)["faults"]
    names = [fault["name"] for fault in faults if fault["by_hand"] and fault["state"] in ("waiting", "lasting")]
    return [f"not saved: faults that were begun by hand ({', '.join(names)})"] if names else []


def _fill(store: SavedLabs, tree: Path, run_dir: Path, plan: Plan, progress: Progress, person: str) -> About:
    line, _ = take_over(run_dir, SAVE_OPEN)
    with line, line.makefile("rb") as replies:
        # Until it is closed, virtual time stands still.
        saving: Saving = result_of(_next(replies, run_dir))
        images = {node.image.name: node.image.digest for node in plan.nodes if node.image.kind == "stored"}
        found = About(
            lab=plan.lab,
            run=str(run_dir.resolve()),
            virtual_s=saving["virtual_s"],
            settings=saving["settings"],
            images=sorted(set(images.values())),
            person=person,
        )
        (tree / ABOUT).write_text(found.model_dump_json(indent=1))
        _copy_lab(store, tree, run_dir, found, {str(parse(name)): digest for name, digest in images.items()})
        # Then what takes long: a lab that cannot be saved is told before.
        (tree / WRITTEN).mkdir()
        for node in plan.nodes:
            written = tree / WRITTEN / f"{node.name}.tar"
            asyncio.run(_pack(run_dir, node.name, ("written",), written, f"what {node.name} has written", progress))
        (tree / VOLUMES).mkdir()
        for name, having in _volumes(plan).items():
            asyncio.run(
                _pack(run_dir, having, ("volume", name), tree / VOLUMES / f"{name}.tar", f"the volume {name}", progress)
            )
        (tree / DISKS).mkdir()
        for name in saving["disks"]:
            _copy_disk(_disk(line, run_dir, name), tree / DISKS / name, progress)
        shutil.copytree(run_dir, tree / RESULTS, symlinks=True)
        progress("results", 0)
    return found


def _next(replies: Any, run_dir: Path) -> bytes:
    line: bytes = replies.readline()
    if not line:
        raise ControlError("the run has ended", run_dir=run_dir)
    return line


def _copy_lab(store: SavedLabs, tree: Path, run_dir: Path, found: About, images: dict[str, str]) -> None:
    """Copies the lab, as it was when the run was begun, and what is beside it; it has to be one."""
    with Client(run_dir) as client:
        file = client.request(SHOW)["lab_file"]
    lab = tree / LAB
    lab.mkdir()
    if file is not None and Path(file).name == LAB_FILE:
        copy_tree(Path(file).parent, lab, without=(run_dir, store.directory))
    (lab / LAB_FILE).write_text(read_output(run_dir / LAB_FILE))
    locked = {name: digest for name, digest in images.items() if not parse(name).digest}
    if locked:
        write_lock(lab, read_lock(lab) | locked)
    try:
        prepare(LabText.read(lab), Overrides(settings=tuple(found.settings)))
    except LabError as error:
        alone = file is not None and Path(file).name != LAB_FILE
        hint = f"; of {file} only the lab is saved: what it needs is saved if it is called {LAB_FILE}" if alone else ""
        raise TemplateError(f"what would be saved is no lab: {error}{hint}") from error


def _volumes(plan: Plan) -> dict[str, str]:
    """The volumes that nodes share, each with one of these nodes."""
    return {volume.name: node.name for node in plan.nodes for volume in node.volumes if volume.name is not None}


async def _pack(run_dir: Path, node: str, words: tuple[str, ...], path: Path, what: str, progress: Progress) -> None:
    """Has a node pack what it has."""
    with path.open("wb") as file:
        packing = asyncio.create_task(_attended(run_dir, node, words, file.fileno()))
        try:
            while not packing.done():
                await asyncio.wait({packing}, timeout=WATCH_S)
                progress(what, path.stat().st_size)
        finally:
            packing.cancel()
            await asyncio.wait({packing})
        packing.result()


async def _attended(run_dir: Path, node: str, words: tuple[str, ...], output: int | None) -> None:
    """Has the agent's program do something in a node."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as nothing:
        stdout = nothing.fileno() if output is None else output
        ending = await attended(reached(run_dir), node, (PROGRAM, *words), None, stdout, errors.fileno())
        if ending.status != 0:
            errors.seek(0)
            said = ending.reason or errors.read(4096).decode(errors="replace").strip()
            raise TemplateError(f"{node}: {said or f'ended with status {ending.status}'}")


def _disk(line: socket.socket, run_dir: Path, node: str) -> int:
    """The run's open file with the contents of a node's disk."""
    line.sendall(node.encode() + b"\n")
    _, files, _, _ = socket.recv_fds(line, 1, 1)
    if not files:
        raise ControlError("the run has ended", run_dir=run_dir)
    return files[0]


def _copy_disk(source: int, target: Path, progress: Progress) -> None:
    copied = 0

    def told(count: int) -> None:
        nonlocal copied
        copied += count
        progress(f"the disk of {target.name}", copied)

    # The run's file is opened anew, since where one reads in that is where all read who have it.
    with open(source, "rb"), open(f"/proc/self/fd/{source}", "rb") as read, target.open("wb") as written:
        copy_sparse(read.fileno(), written.fileno(), told)
