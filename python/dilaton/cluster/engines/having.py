"""What a machine has of what a run needs: a host agent says it before anything else, and the run compares.

Nodes see the programs of the machine that they are on. So results depend on which one that is, unless all have the
same: Dilaton, the guests' kernel, the programs that a plan names, and the C library that these use. On the work drive
virtual time is measured by CPU time, so there the CPU has to be the same, too. What a script starts in turn nobody can
know before; nodes with images do not depend on it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dilaton
from dilaton.cluster.files import place
from dilaton.host import files
from dilaton.host.errors import GuestError, HostLacksError
from dilaton.host.here.doctor import calibration, doctor, facts
from dilaton.host.here.doctor.cpu import cpu_model
from dilaton.host.here.uml import kernels

if TYPE_CHECKING:
    from dilaton.plan.model import Plan, Process

C_LIBRARY = "libc.so.6"

MARK = b"dilaton host agent: "
"""What the line begins with in which an agent says what its machine has; the `Has` follows."""


@dataclass(frozen=True)
class Needs:
    """What a run needs of each of its machines.

    Attributes:
        jailed: Whether guests are in jails.
        same: Files that have to be the same everywhere, by their paths.
        there: Files and directories that have to be there.
    """

    jailed: bool = True
    same: Sequence[str] = ()
    there: Sequence[str] = ()


@dataclass(frozen=True)
class Has:
    """What a machine has.

    Attributes:
        version: Of Dilaton.
        sources: Digest of its sources, and of what its parts share.
        kernel: Digest of the kernel that guests run; empty where there is none.
        gives_kernel: Whether other machines can be given that kernel; Debian's they have themselves.
        c_library: Digest of the C library; empty where it is not found.
        cpu: Model of its CPU.
        cores: How many it has.
        free_cores: How many of them no guest holds.
        ghz: Speed of a core, in thousandths of GHz-equivalents; None: it was not measured.
        memory_bytes: All that it has.
        release: Of its own kernel.
        same: Of `Needs.same`, the digests; empty where there is no such file.
        missing: Of `Needs.there`, what is not.
        lacks: What it lacks to run guests, with the fix; empty: nothing.
        runs: In how many runs it has a part by now, of this user's.
    """

    version: str
    sources: str
    kernel: str
    gives_kernel: bool
    c_library: str
    cpu: str
    cores: int
    free_cores: int
    ghz: int | None
    memory_bytes: int
    release: str
    same: Sequence[str]
    missing: Sequence[str]
    lacks: str
    runs: int


def needs(planned: Plan, *, jailed: bool) -> Needs:
    """What a plan needs of a machine.

    Raises:
        HostLacksError: It needs what only the machine has that conducts the run.
    """
    for node in planned.nodes:
        kept = [bind.path for bind in node.binds if bind.writable]
        kept += [node.disk.image] if node.disk is not None and node.disk.image is not None else []
        for path in kept:
            raise HostLacksError(
                f"{node.name} keeps what it writes in {path}, a file of this machine, and may be on another one",
                "run it on this machine, or take the bind or the image of the disk out",
            )
    # The images of others are carried to where they are not.
    with_images = {node.name for node in planned.nodes if node.image.kind == "stored"}
    on_host = [process for process in planned.processes if process.node not in with_images]
    there = [bind.path for node in planned.nodes for bind in node.binds]
    return Needs(jailed, list(dict.fromkeys(_programs(on_host))), list(dict.fromkeys(there)))


def together(needs: Iterable[Needs]) -> Needs:
    """What several runs need, each in jails."""
    needs = list(needs)
    same, there = ([path for each in needs for path in getattr(each, name)] for name in ("same", "there"))
    return Needs(True, list(dict.fromkeys(same)), list(dict.fromkeys(there)))


def _programs(processes: Iterable[Process]) -> Iterator[str]:
    """The files of programs; what is none of this machine is one that a node brings."""
    for process in processes:
        program = process.argv[0]
        name = os.path.join(process.cwd, program) if "/" in program else program
        if found := shutil.which(name, path=process.env.get("PATH", os.defpath)):
            yield os.path.realpath(found)


def has(needed: Needs) -> Has:
    """What this machine has."""
    lacks, kernel, gives_kernel = "", "", False
    try:
        chosen = kernels.chosen()
        identity, gives_kernel = chosen.identity(), chosen.built is not None
        kernel = identity.sha256 + (kernels.SECCOMP if identity.has_seccomp else "")
        doctor.require(jailed=needed.jailed)
    except HostLacksError as error:
        lacks = str(error)
    cpu = cpu_model(Path("/proc/cpuinfo").read_text())
    stored = calibration.stored(cpu)
    return Has(
        version=dilaton.__version__,
        sources=_sources(),
        kernel=kernel,
        gives_kernel=gives_kernel,
        c_library=_digest(_c_library()),
        cpu=cpu,
        cores=len(os.sched_getaffinity(0)),
        free_cores=facts.free_cores(),
        ghz=None if stored is None else round(stored.ghz * 1000),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        release=platform.release(),
        same=[_digest(path) for path in needed.same],
        missing=[path for path in needed.there if not os.path.exists(path)],
        lacks=lacks,
        runs=place.in_use(place.parent()),
    )


def refusals(needed: Needs, here: Has, there: Has | GuestError, *, drive: str) -> list[str]:
    """Why a machine cannot have a part of a run; a sentence each, without its name.

    Args:
        needed: What was asked of both.
        here: What the machine has that conducts the run.
        there: What the other one has, or why that is not known.
        drive: What drives the run.
    """
    if isinstance(there, GuestError):
        return [str(there)]
    found = [there.lacks] if there.lacks else []
    if there.version != here.version:
        found.append(f"it has Dilaton {there.version}, and this machine {here.version}; install the same on both")
    elif there.sources != here.sources:
        found.append(f"its Dilaton {there.version} has other sources than this machine's; install the same on both")
    if there.kernel and there.kernel != here.kernel and not here.gives_kernel:
        found.append(
            f"its guests run another kernel (sha256 {_short(there.kernel)}) than those here ({_short(here.kernel)}); "
            f"install the same, or choose it by dilaton kernel use or {kernels.VARIABLE}"
        )
    if there.c_library != here.c_library:
        found.append("it has another C library; all machines need the same release of the same distribution")
    for path, ours, theirs in zip(needed.same, here.same, there.same, strict=True):
        if not theirs:
            found.append(f"it has no {path}; install it there as here")
        elif theirs != ours:
            found.append(f"its {path} is another file than here; install the same version, or give nodes images")
    found += [f"it has no {path}; put it there as here, under the same name" for path in there.missing]
    if drive == "work" and there.cpu != here.cpu:
        found.append(
            f"it has another CPU ({there.cpu}) than this machine ({here.cpu}), and on the work drive virtual time is "
            "measured by CPU time; use drive event, or machines of one kind"
        )
    return found


def _short(kernel: str) -> str:
    """A kernel as people can tell it: the begin of its digest, and whether it traces its programs."""
    digest, seccomp, _ = kernel.partition(kernels.SECCOMP)
    return digest[:12] + seccomp


def _sources() -> str:
    """Digest of all that two Dilatons have to have in common. Of compiled parts it is what they share with others:
    their own bytes depend on where they were built."""
    package = Path(dilaton.__file__).parent
    digest = hashlib.sha256()
    shared = [files.WIRE_DEFINITION, files.CLOCK_PAGE_DEFINITION]
    for path in [*sorted(package.rglob("*.py")), *shared]:
        name = path.name if path in shared else str(path.relative_to(package))
        digest.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _c_library() -> str:
    """The file of the C library that this process uses."""
    try:
        mapped = Path("/proc/self/maps").read_text().split()
    except OSError:
        return ""
    return next((word for word in mapped if word.endswith(f"/{C_LIBRARY}")), "")


def _digest(path: str) -> str:
    """The digest of a file; empty where it cannot be read."""
    try:
        return kernels.sha256(Path(path))
    except OSError:
        return ""
