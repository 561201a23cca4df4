"""JSON schemas in which fields are described by the texts below them, as in `virtual_s: float` and a string after it.

pydantic can do that too (`use_attribute_docstrings`), but reads the sources of models whenever they are imported, which
took each command a tenth of a second. Only who writes a schema needs it.
"""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Mapping
from typing import Any, Generic

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema, TypedDictSchema


class Described(GenerateJsonSchema):
    """Generates such schemas."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """The schema of a model, with its fields described."""
        aliases = {field.validation_alias: name for name, field in schema["cls"].model_fields.items()}
        return _with_texts(super().model_schema(schema), schema["cls"], aliases)

    def typed_dict_schema(self, schema: TypedDictSchema) -> JsonSchemaValue:
        """The schema of a dictionary with given keys, described as well."""
        return _with_texts(super().typed_dict_schema(schema), schema["cls"], {})


def _with_texts(described: JsonSchemaValue, of: type[Any], aliases: Mapping[Any, str]) -> JsonSchemaValue:
    texts = _texts(of)
    for written, field in described.get("properties", {}).items():
        if text := texts.get(aliases.get(written, written)):
            field.setdefault("description", text)
    return described


def _texts(model: type[Any]) -> dict[str, str]:
    """What stands below the fields of a class, and of those that it inherits from."""
    found: dict[str, str] = {}
    for part in reversed(model.__mro__):
        if part in (BaseModel, Generic, dict, object):
            continue
        [definition] = ast.parse(inspect.getsource(part)).body
        assert isinstance(definition, ast.ClassDef)
        for field, below in itertools.pairwise(definition.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = inspect.cleandoc(text)
    return found
