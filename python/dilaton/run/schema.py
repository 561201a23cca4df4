"""The JSON schema of `run.json`, published as `docs/run.schema.json`.

`python -m dilaton.run.schema > docs/run.schema.json` writes it anew.
"""

from __future__ import annotations

import json
import sys

from dilaton.run.record.model import Record
from dilaton.schema.described import Described


def schema_text() -> str:
    """The schema as text."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Record.model_json_schema(
        mode="serialization", schema_generator=Described
    )
    schema["title"] = "The record of a run of Dilaton: run.json"
    return json.dumps(schema, indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
