"""The process of a run on a machine without a kernel: as `dilaton.service.runner`, for whoever launches runs.

A program called `endless` goes on until it is stopped, and a host whose name begins with `lost` is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dilaton.host.port import Machine
from dilaton.run import machines
from dilaton.service import conduct, runner
from tests.stub_machine import StubMachine


def stub(
    hidden: tuple[Path, ...] = (),
    machines: int = 1,
    onto: Sequence[str] = (),
    engine: str = "local",
    behind: int = 0,
) -> Machine:
    return StubMachine(endless="endless", loses=next((host for host in onto if host.startswith("lost")), None))


if __name__ == "__main__":
    machines.chosen = stub
    conduct.require = lambda **_: None  # type: ignore[assignment]
    sys.exit(runner.main())
