"""Dilaton: networks of unmodified Linux programs, in virtual time."""

from __future__ import annotations

__version__ = "0.1.0"
