"""The process of a server whose runs are on a machine without a kernel, unless it is told to take real ones."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dilaton.server.serve import serve
from dilaton.server.settings import Settings
from dilaton.service import launch

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.stub_server", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--postgresql", default="")
    parser.add_argument("--roles", type=Path)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--kernel", action="store_true", help="have runs with a kernel")
    asked = vars(parser.parse_args())
    if not asked.pop("kernel"):
        launch.RUNNER = (sys.executable, "-P", "-m", "tests.stub_runner")
    sys.exit(serve(Settings(**asked)))
