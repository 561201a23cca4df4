"""`mininet:`: topology files for `mn --custom`, written to Mininet's `Topo` interface.

Such a file is a Python program. It is run in a process of its own, in a jail in which it can write nothing and reach no
network, on our own description of that interface (`_mininet`), which makes no network but tells what it would be.

Switches become switches of group `switch`, hosts nodes of group `host`; links have the rate, delay, loss and queue of
TCLink's `bw`, `delay`, `loss` and `max_queue_size`, in both directions.
"""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import sys
from ipaddress import ip_interface
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from dilaton.lab import syntax, units
from dilaton.lab.impairments import PacketLimit, Queue
from dilaton.lab.importers._importer import Importer, host_name
from dilaton.lab.kinds import HOST, SWITCH
from dilaton.lab.links import Endpoint, Link
from dilaton.lab.nodes import Node
from dilaton.lab.topology import Topology

CPU_S_MAX = 30
"""Seconds of CPU that a file may take to describe its network: as many beside other load as alone."""

WAIT_HOST_S_MAX = 300
"""Host seconds after which a file that takes no CPU is taken to wait for what never comes."""

MEGA = 10**6
DESCRIBE = Path(__file__).parent / "_mininet" / "describe.py"
JAIL = (
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
)

HOW_NOT_WHAT = frozenset({"use_hfsc", "use_tbf", "use_htb", "speedup", "cls", "fast"})
"""Options of links that say how Mininet makes them."""

OF_SWITCHES = frozenset({"isSwitch", "dpid", "protocols", "cls", "batch", "failMode", "datapath", "inband"})
"""Options of switches that change nothing for a bridge that learns."""


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
        nodes, addresses = {}, {}
        for name, is_switch, options in found["nodes"]:
            place = f"{'switch' if is_switch else 'host'} {name}"
            if not is_switch and options.get("ip"):
                text = str(options["ip"])
                addresses[name] = ip_interface(text if "/" in text else f"{text}/8")
            for key, value in options.items():
                if key not in (OF_SWITCHES if is_switch else {"ip", "cls"}) and value is not None:
                    self.refuse(key, place)
            nodes[host_name(name, place)] = Node(
                kind=SWITCH if is_switch else HOST, group="switch" if is_switch else "host"
            )
        used: set[str] = set()
        links = [
            self._link(info, {name: a for name, a in addresses.items() if not _seen(used, name, info)})
            for info in found["links"]
        ]
        return Topology(nodes, links)

    def _describe(self, path: Path) -> dict[str, Any]:
        jail = shutil.which("bwrap")
        if jail is None:
            raise ValueError(f"{path}: a topology file of Mininet is a program; to run it in a jail install bubblewrap")
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file")
        command = [jail, *JAIL, sys.executable, "-B", str(DESCRIBE), str(path.resolve()), self.topo or "", *self.args]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=WAIT_HOST_S_MAX,
                check=False,
                preexec_fn=_limit_cpu,
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"{path}: did not describe its network within {WAIT_HOST_S_MAX} s") from error
        if done.returncode == 128 + signal.SIGXCPU:
            raise ValueError(f"{path}: did not describe its network within {CPU_S_MAX} s of CPU")
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except json.JSONDecodeError as error:
            said = done.stderr.strip().splitlines()
            why = said[-1] if said else f"exit status {done.returncode}"
            raise ValueError(f"{path}: failed: {why}") from error
        if "error" in found:
            raise ValueError(f"{path}: {found['error']}")
        return found

    def _link(self, info: dict[str, Any], addresses: dict[str, Any]) -> Link:
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
            elif key not in ("intfName1", "intfName2") and value not in (False, 0, {}):
                self.refuse(key, place)
        ends = [
            Endpoint(
                node=info[f"node{side}"],
                interface=_interface(info, side),
                **({"addresses": [addresses[info[f"node{side}"]]]} if info[f"node{side}"] in addresses else {}),
            )
            for side in (1, 2)
        ]
        return Link(endpoints=tuple(ends), **{**fields, **self.link_fields()})


def _interface(info: dict[str, Any], side: int) -> str:
    """The name of an interface: the given one without its node, else `eth` and the port's number."""
    node = info[f"node{side}"]
    name = str(info.get(f"intfName{side}") or f"eth{info[f'port{side}']}")
    return syntax.parse_interface(name.removeprefix(f"{node}-"))


def _limit_cpu() -> None:
    """Limits the CPU time of this process, as the child does before it becomes the jail."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = CPU_S_MAX if hard == resource.RLIM_INFINITY else min(CPU_S_MAX, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _seen(used: set[str], name: str, info: dict[str, Any]) -> bool:
    """Whether a host's address is on an earlier link already; a host has it on its first."""
    if name not in (info["node1"], info["node2"]):
        return True
    if name in used:
        return True
    used.add(name)
    return False
