"""`dilaton serve`: becomes the server's process, which is no part of the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from dilaton.cli.errors import BadInputError
from dilaton.host.errors import HostLacksError
from dilaton.host.processes import PYTHON

NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "argon2", "websockets")
"""What the server imports that nothing else does."""


def become_server(asked: Mapping[str, Path | str | int | None]) -> NoReturn:
    """Becomes the server.

    Args:
        asked: `config`, `backup` and `restore`, which are files, and fields of its settings; none, or None: as the
            file says, or as usual.

    Raises:
        HostLacksError: it is not installed.
        BadInputError: it cannot do both.
    """
    if asked.get("backup") and asked.get("restore"):
        raise BadInputError("--backup, --restore: one of them at a time")
    if lacking := [name for name in NEEDED if find_spec(name) is None]:
        raise HostLacksError(
            f"the server's packages are not installed: {', '.join(lacking)}", "pip install dilaton[server]"
        )
    options = {
        name: str(value) if isinstance(value, Path) else value for name, value in asked.items() if value is not None
    }
    os.execv(PYTHON[0], [*PYTHON, "-m", "dilaton.server", json.dumps(options)])
