"""The JSON schema of the control protocol, published as `docs/control.schema.json`, for other languages.

`python -m dilaton.run.control.schema > docs/control.schema.json` writes it anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from dilaton.host.messages import Event
from dilaton.run.control.errors import ErrorKind
from dilaton.run.control.happenings import Happening
from dilaton.run.control.verbs import VERBS
from dilaton.run.record.events import KINDS
from dilaton.schema.described import Described

Mode = Literal["validation", "serialization"]

REF = "#/$defs/{model}"
"""How a schema refers to another."""


def schema_text() -> str:
    """The schema as text: what each verb takes and answers, the kinds of errors, of happenings and of events."""
    types: dict[tuple[str, Mode], TypeAdapter[Any]] = {}
    for verb in VERBS:
        types[verb.asked.__name__, "validation"] = TypeAdapter(verb.asked)
        types[verb.name.answered.__name__, "serialization"] = TypeAdapter(verb.name.answered)
    inputs = [(of, mode, adapter) for (of, mode), adapter in types.items()]
    places, definitions = TypeAdapter.json_schemas(inputs, ref_template=REF, schema_generator=Described)
    happening = TypeAdapter(Happening).json_schema(mode="serialization", ref_template=REF, schema_generator=Described)
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Speaking to a run of Dilaton: docs/control-protocol.md",
        "verbs": {
            verb.name: {
                "description": verb.what,
                "takes": places[verb.asked.__name__, "validation"],
                "answers": places[verb.name.answered.__name__, "serialization"],
                "then": verb.then or None,
            }
            for verb in VERBS
        },
        "errors": list(get_args(ErrorKind)),
        "$defs": dict(sorted((definitions["$defs"] | happening.pop("$defs")).items())),
        "happening": happening,
        "events": {kind: _event(forms) for kind, forms in sorted(KINDS.items())},
    }
    return json.dumps(schema, indent=1) + "\n"


def _event(forms: Sequence[type[Event]]) -> dict[str, Any]:
    """What is recorded of an event of a kind: one of its forms."""
    return {
        "oneOf": [
            {
                "description": form.__doc__,
                "type": "object",
                "properties": {"kind": {"const": form.tag}} | {name: of.schema for name, of in form.shape.items()},
                "required": ["kind", *form.shape],
                "additionalProperties": False,
            }
            for form in forms
        ]
    }


if __name__ == "__main__":
    sys.stdout.write(schema_text())
