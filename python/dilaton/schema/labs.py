"""The JSON schema of labs, for editors: names of fields, what each is, and the words that it may have.

`dilaton schema` prints it. It is made from the model that reads labs, so it knows every field. It does not know what a
field may say beyond that: quantities, such as `10Mbit`, are text to it, and what the whole lab has to be for a part to
make sense is for `dilaton check`. So whatever `check` takes, the schema takes, and not the other way round.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from dilaton.lab.model import Lab
from dilaton.lab.parts.disks import Disk
from dilaton.lab.parts.impairments import Trace
from dilaton.schema.described import Described

DIALECT = "https://json-schema.org/draft/2020-12/schema"

WRITTEN: JsonSchemaValue = {"type": ["string", "number", "boolean"]}
"""What YAML makes of a word: `yes`, `5201` and `10Mbit` are words to us, and not all of them to YAML."""

SCALARS = {"string", "integer", "number", "boolean"}


KEPT_OTHERWISE = (Disk, Trace)
"""Parts whose fields are not all written as they are kept: editors may propose these, and mark none."""

WITHOUT = re.compile(r"(?P<begin>^|\. |\n)?\bNone: ")
"""What a field means whose value is None, which is Python's word for what is not written in a lab."""


class _OfLabs(Described):
    """What users write, where validators read it from text before the model sees it."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """What a validator reads: a word, or what the inner type takes itself. Of whole parts see `model_schema`."""
        inner = self.generate_inner(schema["schema"])
        if not inner or "enum" in inner or "const" in inner or "properties" in inner:
            return inner
        if inner.get("type") in SCALARS:
            return dict(WRITTEN)
        return {"anyOf": [inner, WRITTEN]}

    def is_instance_schema(self, schema: core_schema.IsInstanceSchema) -> JsonSchemaValue:
        """A value of a type of ours, which is written as its validator wants it."""
        return dict(WRITTEN) if schema["cls"] is Fraction else {}

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """The same."""
        return {}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """A part. One that reads short forms may be a word or a list, too, or nothing, as in `nodes: {a: }`."""
        part = super().model_schema(schema)
        for field in part.get("properties", {}).values():
            if "description" in field:
                field["description"] = WITHOUT.sub(_without, field["description"])
        if schema["cls"] in KEPT_OTHERWISE:
            return {"anyOf": [part, {}]}
        if schema["schema"]["type"] not in ("function-before", "function-wrap"):
            return part
        described: JsonSchemaValue = {name: part.pop(name) for name in ("title", "description") if name in part}
        return {**described, "anyOf": [part, {**WRITTEN, "type": [*WRITTEN["type"], "array", "null"]}]}


def _without(found: re.Match[str]) -> str:
    begin = found["begin"]
    return "without it: " if begin is None else f"{begin}Without it: "


def lab_schema() -> dict[str, Any]:
    """The schema, by which whatever a lab file may hold is valid."""
    schema = Lab.model_json_schema(schema_generator=_OfLabs, mode="validation")
    return {"$schema": DIALECT, **schema, "title": "A lab of Dilaton", "type": "object"}


def schema_text() -> str:
    """The same as text."""
    return json.dumps(lab_schema(), indent=1) + "\n"
