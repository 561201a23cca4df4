"""Mininet's messages, which go nowhere here."""

from __future__ import annotations

from typing import Any


def info(*_words: Any, **_options: Any) -> None:
    """Says nothing."""


debug = warn = warning = error = output = setLogLevel = info
