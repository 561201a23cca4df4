"""`python -m dilaton.server`: the process of a server, which `dilaton serve` becomes; its options are JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dilaton.lab.errors import LabError
from dilaton.server.serve import BAD_INPUT, keep_copy, serve
from dilaton.server.settings import Settings, default_directory, of_file


def main(options: str) -> int:
    """Serves with these options, which count instead of what the file among them says; returns the exit status."""
    asked: dict[str, Any] = json.loads(options)
    file, to, of = (asked.pop(name, None) for name in ("config", "backup", "restore"))
    if "directory" in asked:
        asked["directory"] = Path(asked["directory"])
    try:
        said = of_file(Path(file)) if file else {}
    except LabError as error:
        print(f"dilaton: {error}", file=sys.stderr)
        return BAD_INPUT
    settings = Settings(**({"directory": default_directory()} | said | asked))
    if to or of:
        return keep_copy(settings, Path(to) if to else None, Path(of) if of else None)
    return serve(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
