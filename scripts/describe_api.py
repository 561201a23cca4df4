"""Writes what the server's API is, as OpenAPI, to target/openapi.json, of which the page's types are made."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from dilaton.host.files import ROOT
from dilaton.server.app import described, opened
from dilaton.server.settings import Settings

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        state = opened(Settings(Path(directory)))
        (ROOT / "target" / "openapi.json").write_text(json.dumps(described(state).openapi()))
        state.store.close()
