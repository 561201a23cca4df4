"""`python -m dilaton.server`: the process of a server, which `dilaton serve` becomes; its options are JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dilaton.server.serve import serve
from dilaton.server.settings import Settings, default_directory


def main(options: str) -> int:
    """Serves with these options; returns the exit status."""
    asked = json.loads(options)
    directory = asked.pop("directory")
    return serve(Settings(directory=Path(directory) if directory else default_directory(), **asked))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
