"""Schemas of what is written and read: for editors and programs."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from dilaton.schema.labs import lab_schema
from dilaton.server.api.endpoints import PREFIX, PUBLIC, Endpoints

ENDPOINTS = Endpoints()

_MAKING = threading.Lock()
"""The schema is made of sources, and Python 3.11 fails when two threads parse at the same moment."""


@ENDPOINTS.add("GET", f"{PREFIX}/schema/lab", PUBLIC)
def show_lab_schema() -> dict[str, Any]:
    """The JSON schema of labs, as `dilaton schema` prints it; it has nothing of this server's in it."""
    with _MAKING:
        return _schema()


@cache
def _schema() -> dict[str, Any]:
    return lab_schema()
