"""The plan of one node without links, in which nothing happens by itself: what `dilaton exec` runs a program in.

It is written down as JSON's own values, not made of the plan's models, which take longer to import than a command in a
guest takes otherwise. A test holds it to the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from dilaton.lab.kinds import HOST
from dilaton.plan.bind import Bind
from dilaton.plan.common import FORMAT, GRACE_NS, MODULES

GUEST = "guest0"

NODE = "exec"
"""Its name, and so its host name."""

END_NS = 2**62
"""When the run ends if nobody ends it, in a hundred years."""


@dataclass(frozen=True)
class Alone:
    """What can be chosen of it.

    Attributes:
        drive: What drives virtual time.
        tdf: Host seconds per virtual second.
        max_speed: Virtual seconds per host second at most; None: no bound.
        seed: Of its random numbers.
        memory_bytes: What its guest is given.
        binds: Directories of this machine that the node sees or writes.
    """

    drive: Literal["wall", "work", "event"]
    tdf: Fraction
    max_speed: Fraction | None
    seed: int
    memory_bytes: int
    binds: Sequence[Bind]

    def plan(self) -> dict[str, Any]:
        """The plan, as in a plan's file."""
        tdf = _ratio(self.tdf)
        time = {
            "drive": self.drive,
            "tdf": tdf,
            "max_speed": None if self.max_speed is None else _ratio(self.max_speed),
            "watch": None,
            "lateness_ns": None,
        }
        guest = {
            "name": GUEST,
            "memory_bytes": self.memory_bytes,
            "tdf": tdf,
            "machine": None,
            "clock_rate": _ratio(Fraction(1)),
            "modules": list(MODULES),
            "sysctls": {},
        }
        node = {
            "name": NODE,
            "guest": GUEST,
            "image": {"kind": "host"},
            "interfaces": [],
            "bridge": None,
            "loopback": [],
            "files": [],
            "binds": [asdict(bind) for bind in self.binds],
            "volumes": [],
            "routes": [],
            "cpu": None,
            "sysctls": {},
            "memory_bytes": None,
            "disk": None,
            "kind": HOST,
            "position": None,
            "written": None,
        }
        return {
            "format": FORMAT,
            "lab": NODE,
            "seed": self.seed,
            "time": time,
            "stop_after_ns": END_NS,
            "stays": False,
            "grace_ns": GRACE_NS,
            "guests": [guest],
            "nodes": [node],
            "links": [],
            "wires": [],
            "tables": {},
            "traces": {},
            "course": [],
            "hosts": [{"address": "127.0.1.1", "names": [NODE]}],
            "processes": [],
            "measure": {
                "interfaces_period_ns": None,
                "tcp_period_ns": None,
                "nodes_period_ns": None,
                "outputs": False,
                "captures": [],
            },
            "results": {},
            "checks": [],
        }


def _ratio(value: Fraction) -> dict[str, int]:
    return {"numerator": value.numerator, "denominator": value.denominator}
