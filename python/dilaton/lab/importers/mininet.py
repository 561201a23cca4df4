"""`mininet:`: topology files for `mn --custom`, written to Mininet's `Topo` interface.

Such a file is a Python program. It is run in a process of its own, in a jail in which it can write nothing, reach no
network and begin no further process, on our own description of that interface (`_mininet`), which makes no network but
tells what it would be.

Switches become switches of group `switch`, hosts nodes of group `host`, or routers if their class is called
`...Router`, as in Mininet's own examples; links have the rate, delay, loss and queue of TCLink's `bw`, `delay`, `loss`
and `max_queue_size`, in both directions.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from dilaton.lab.importers._alone import no_processes
from dilaton.lab.importers._importer import Importer, host_name
from dilaton.lab.kinds import HOST, ROUTER, SWITCH
from dilaton.lab.parts.impairments import PacketLimit, Queue
from dilaton.lab.parts.links import Endpoint, Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import made
from dilaton.lab.topology import Topology

CPU_S_MAX = 30
"""Seconds of CPU that a file may take to describe its network: as many beside other load as alone."""

WAIT_HOST_S_MAX = 300
"""Host seconds after which a file that takes no CPU is taken to wait for what never comes."""

MEMORY_BYTES_MAX = 2 << 30
DESCRIPTION_BYTES_MAX = 16 << 20

MEGA = 10**6
DESCRIBE = Path(__file__).parent / "_mininet" / "describe.py"
JAIL = (
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--remount-ro",
    "/dev",
    "--tmpfs",
    "/proc",
    "--remount-ro",
    "/proc",
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
)
"""No /proc: it shows other processes, and one of its own cannot be had in a jail, as a server's workers are in."""

HOW_NOT_WHAT = frozenset({"use_hfsc", "use_tbf", "use_htb", "speedup", "cls", "fast"})
"""Options of links that say how Mininet makes them."""

OF_SWITCHES = frozenset({"isSwitch", "dpid", "protocols", "cls", "batch", "failMode", "datapath", "inband"})
"""Options of switches that change nothing for a bridge that learns."""


OF_HOSTS = frozenset({"ip", "cls", "addresses", "routes"})
"""Options of hosts that are read; `routes`, which our own exporter writes, are what is planned anyway."""

ROUTER_CLASS = re.compile(r"Router'>$")
FIXES = {"defaultRoute": "routes are planned"}


@dataclass
class Addresses:
    """The addresses of a host: by interface, and one for its first interface that has none of its own."""

    by_interface: dict[str, list[str]]
    first: str | None

    @classmethod
    def of(cls, name: str, options: dict[str, Any], place: str) -> Addresses:
        """What the options of a host say.

        Raises:
            ValueError: `addresses` is no list of pairs of interface and address.
        """
        found: dict[str, list[str]] = {}
        listed = options.get("addresses") or []
        if not isinstance(listed, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in listed):
            raise ValueError(f"{place}: addresses: must be pairs of an interface and its address")
        for interface, address in listed:
            found.setdefault(str(interface).removeprefix(f"{name}-"), []).append(str(address))
        return cls(found, str(options["ip"]) if options.get("ip") else None)

    def take(self, interface: str, own: object) -> list[str]:
        """The addresses of an interface, of which `own` is what its link says."""
        first, self.first = self.first, None
        texts = [str(own)] if own else self.by_interface.get(interface) or ([first] if first else [])
        return [text if "/" in text else f"{text}/8" for text in texts]


class Source(Importer):
    """A topology file of Mininet."""

    mininet: str
    topo: str | None = None
    """The name of the topology in the file's `topos`; None: its only one."""
    args: Annotated[list[str], BeforeValidator(syntax.parse_names)] = Field(default_factory=list)
    """The arguments of the topology, as in `--topo name,1,fanout=2`."""

    def read(self, directory: Path) -> Topology:
        """See `Importer.read`."""
        found = self._describe(directory / self.mininet)
        nodes = {}
        addresses: dict[str, Addresses] = {}
        for name, is_switch, options in found["nodes"]:
            place = f"{'switch' if is_switch else 'host'} {name}"
            if not is_switch:
                addresses[name] = Addresses.of(name, options, place)
            for key, value in options.items():
                if key not in (OF_SWITCHES if is_switch else OF_HOSTS) and value is not None:
                    self.refuse(key, place, FIXES.get(key, ""))
            host = ROUTER if ROUTER_CLASS.search(str(options.get("cls"))) else HOST
            nodes[host_name(name, place)] = Node(
                kind=SWITCH if is_switch else host, group="switch" if is_switch else "host"
            )
        return Topology(nodes, [self._link(info, addresses) for info in found["links"]])

    def _describe(self, path: Path) -> dict[str, Any]:
        jail = shutil.which("bwrap")
        if jail is None:
            raise ValueError(f"{path}: a topology file of Mininet is a program; to run it in a jail install bubblewrap")
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file")
        command = [jail, *JAIL, sys.executable, "-B", str(DESCRIBE), str(path.resolve()), self.topo or "", *self.args]
        # Files have an end, which pipes have not.
        with (
            tempfile.TemporaryFile("w+") as output,
            tempfile.TemporaryFile("w+", errors="replace") as errors,
            tempfile.TemporaryFile("w+b") as alone,
        ):
            alone.write(no_processes())
            alone.seek(0)
            command[1:1] = ["--seccomp", str(alone.fileno())]
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    timeout=WAIT_HOST_S_MAX,
                    check=False,
                    pass_fds=(alone.fileno(),),
                    preexec_fn=_limit,
                )
            except subprocess.TimeoutExpired as error:
                raise ValueError(f"{path}: did not describe its network within {WAIT_HOST_S_MAX} s") from error
            output.seek(0)
            errors.seek(0)
            described, said = output.read(), errors.read().strip().splitlines()
        if done.returncode == 128 + signal.SIGXCPU:
            raise ValueError(f"{path}: did not describe its network within {CPU_S_MAX} s of CPU")
        try:
            found: dict[str, Any] = json.loads(described)
        except (ValueError, RecursionError) as error:
            why = said[-1] if said else f"exit status {done.returncode}"
            raise ValueError(f"{path}: failed: {why}") from error
        if "error" in found:
            raise ValueError(f"{path}: {found['error']}")
        return found

    def _link(self, info: dict[str, Any], addresses: dict[str, Addresses]) -> Link:
        place = f"link {info['node1']} -- {info['node2']}"
        fields: dict[str, Any] = {}
        for key, value in info.items():
            if value is None or key in HOW_NOT_WHAT or key in ("node1", "node2", "port1", "port2"):
                continue
            if key == "bw":
                fields["rate_bit_per_s"] = round(float(value) * MEGA)
            elif key == "delay":
                fields["delay"] = units.parse_duration(str(value), f"{place}: delay", units.DELAY_MAX)
            elif key == "loss":
                fields["loss"] = float(value) / 100
            elif key == "max_queue_size":
                fields["queue"] = Queue(limit=PacketLimit(packets=int(value)))
            elif key in ("params1", "params2") and isinstance(value, dict):
                for inner in value.keys() - {"ip"}:
                    self.refuse(f"{key}.{inner}", place)
            elif key not in ("intfName1", "intfName2") and value not in (False, 0, {}):
                self.refuse(key, place)
        ends = []
        for side in (1, 2):
            node, interface = info[f"node{side}"], _interface(info, side)
            own = (info.get(f"params{side}") or {}).get("ip")
            given = addresses[node].take(interface, own) if node in addresses else []
            ends.append(
                made(Endpoint, {"node": node, "interface": interface} | ({"address": given} if given else {}), place)
            )
        return Link(endpoints=tuple(ends), **{**fields, **self.link_fields()})


def _interface(info: dict[str, Any], side: int) -> str:
    """The name of an interface: the given one without its node, else `eth` and the port's number."""
    node = info[f"node{side}"]
    name = str(info.get(f"intfName{side}") or f"eth{info[f'port{side}']}")
    return syntax.parse_interface(name.removeprefix(f"{node}-"))


def _limit() -> None:
    """Limits what this process may use, as the child does before it becomes the jail."""
    limits = {
        resource.RLIMIT_CPU: CPU_S_MAX,
        resource.RLIMIT_AS: MEMORY_BYTES_MAX,
        resource.RLIMIT_FSIZE: DESCRIPTION_BYTES_MAX,
    }
    for what, most in limits.items():
        hard = resource.getrlimit(what)[1]
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (soft, hard))
