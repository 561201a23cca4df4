"""Going on from a saved lab: the lab, and the plan of a run whose nodes begin with what they had."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dilaton.lab.errors import Problem
from dilaton.plan.model import Plan
from dilaton.service.errors import RequestError
from dilaton.service.prepare import Prepared, prepare
from dilaton.service.request import LabText, RunRequest
from dilaton.service.saved.store import DISKS, LAB, VOLUMES, WRITTEN, SavedLabs, about
from dilaton.templates.store import TemplateError


def is_meant(path: Path) -> bool:
    """Whether what stands for a lab is no file, but the name of a saved lab."""
    return not path.exists() and str(path) in SavedLabs().names()


def named(name: str) -> LabText:
    """The lab of a saved lab, for a request.

    Raises:
        RequestError: There is none of that name, or it is damaged.
    """
    with reading(name) as tree:
        return LabText.read(tree / LAB)


@contextlib.contextmanager
def reading(name: str, directory: Path | None = None) -> Iterator[Path]:
    """The tree of a saved lab, which stays for as long as it is read.

    Args:
        name: Of the lab.
        directory: Where such labs are; None: where those of the user are.

    Raises:
        RequestError: There is none of that name, or it is damaged.
    """
    try:
        with SavedLabs(directory).reading(name) as tree:
            if tree is None:
                raise RequestError(f"{name}: no saved lab; {SavedLabs.listing} shows all")
            yield tree
    except TemplateError as error:
        raise RequestError(str(error)) from error


def restored(request: RunRequest, tree: Path) -> Prepared:
    """What a run of a saved lab is: it begins where the saved run was, as far as files and links go.

    Raises:
        LabError: With what is to count instead of what it says it has mistakes.
        RequestError: Such a run cannot be what is asked for.
    """
    settings = (*about(tree).settings, *request.overrides.settings)
    overrides = request.overrides.model_copy(update={"settings": settings})
    prepared = prepare(LabText.read(tree / LAB), overrides)
    if prepared.lab.fidelity.confirm:
        why = "a run of a saved lab cannot be confirmed"
        if request.overrides.confirm:
            raise overrides.unconfirmed(f"{why}; leave this out")
        raise prepared.placed([Problem("", 0, 0, "fidelity.confirm", f"{why}; write --no-confirm")])
    if request.machines > 1 or request.onto or request.engine != "local":
        raise RequestError(
            "a saved lab runs on this machine alone; leave this out", "onto" if request.onto else "machines"
        )
    return replace(prepared, plan=_with_contents(prepared.plan, tree))


def _with_contents(plan: Plan, tree: Path) -> Plan:
    nodes = []
    for node in plan.nodes:
        written, contents = tree / WRITTEN / f"{node.name}.tar", tree / DISKS / node.name
        update: dict[str, object] = {"written": str(written)} if written.exists() else {}
        update["volumes"] = [
            volume.model_copy(update={"written": str(archive)})
            if (archive := tree / VOLUMES / f"{volume.name}.tar").exists()
            else volume
            for volume in node.volumes
        ]
        if node.disk is not None and contents.exists():
            if node.disk.size_bytes < contents.stat().st_size:
                raise RequestError(f"{node.name}: its disk has become smaller than what was saved of it")
            update["disk"] = node.disk.model_copy(update={"image": None, "contents": str(contents)})
        nodes.append(node.model_copy(update=update))
    return plan.model_copy(update={"nodes": nodes})
