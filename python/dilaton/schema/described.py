"""JSON schemas in which fields are described by the texts below them, as in `virtual_s: float` and a string after it.

pydantic can do that too (`use_attribute_docstrings`), but reads the sources of models whenever they are imported, which
took each command a tenth of a second. Only who writes a schema needs it.
"""

from __future__ import annotations

import ast
import inspect
import itertools
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema


class Described(GenerateJsonSchema):
    """Generates such schemas."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """The schema of a model, with its fields described."""
        described = super().model_schema(schema)
        texts = _texts(schema["cls"])
        aliases = {field.validation_alias: name for name, field in schema["cls"].model_fields.items()}
        for written, field in described.get("properties", {}).items():
            if text := texts.get(aliases.get(written, written)):
                field.setdefault("description", text)
        return described


def _texts(model: type[Any]) -> dict[str, str]:
    """What stands below the fields of a model, and of those that it inherits from."""
    found: dict[str, str] = {}
    for part in reversed(model.__mro__):
        if not issubclass(part, BaseModel) or part is BaseModel:
            continue
        [definition] = ast.parse(inspect.getsource(part)).body
        assert isinstance(definition, ast.ClassDef)
        for field, below in itertools.pairwise(definition.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = inspect.cleandoc(text)
    return found
