"""Values of the port as JSON, and back: whatever comes from another machine is checked by the types of its fields."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Sequence
from enum import IntFlag
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Value = TypeVar("Value")


def to_json(value: Any) -> Any:
    """A value of data classes, numbers, texts and fractions, as what JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Fraction):
        return [value.numerator, value.denominator]
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    return value


def from_json(kind: type[Value], value: Any) -> Value:
    """What `to_json` made of a value of that kind.

    Raises:
        ValueError: It is none.
    """
    return _read(kind, value)  # type: ignore[no-any-return]


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (kind,) = (each for each in arguments if each is not type(None))
        return _read(kind, value)
    if origin is Literal and value in arguments:
        return value
    if origin in (Sequence, list) and isinstance(value, list):
        return [_read(arguments[0], each) for each in value]
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        hints = _hints(kind)  # type: ignore[arg-type]
        if value.keys() == {field.name for field in dataclasses.fields(kind)}:
            return kind(**{name: _read(hints[name], each) for name, each in value.items()})  # type: ignore[operator]
    if kind is Fraction and isinstance(value, list) and len(value) == 2:
        numerator, denominator = (_read(int, each) for each in value)
        if denominator > 0:
            return Fraction(numerator, denominator)
    if isinstance(kind, type) and issubclass(kind, IntFlag) and type(value) is int:
        return kind(value)
    if kind in (int, str, bool) and type(value) is kind:
        return value
    raise ValueError(f"{str(value)[:80]}: not a value of {kind}")
