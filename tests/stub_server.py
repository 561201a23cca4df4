"""The process of a server whose runs are on a machine without a kernel: `python -m tests.stub_server DIRECTORY PORT`."""

from __future__ import annotations

import sys
from pathlib import Path

from dilaton.server.serve import serve
from dilaton.server.settings import Settings
from dilaton.service import launch

if __name__ == "__main__":
    launch.RUNNER = (sys.executable, "-P", "-m", "tests.stub_runner")
    sys.exit(serve(Settings(Path(sys.argv[1]), port=int(sys.argv[2]), at_once=3)))
