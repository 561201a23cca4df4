"""The raw form of an impairment, as on the command line of tc-netem(8): `delay 10ms 2ms loss gemodel 1% 10%`.

It is read into the same fields that `delay:`, `loss:` and so on have, so that everything is checked and shown in one
way. Numbers carry units as everywhere in a lab; times also as tc spells them, `10msec`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dilaton.lab.text import syntax, units

_VALUE = re.compile(r"[+-]?[0-9.]", re.ASCII)
_TC_TIME = re.compile(r"(?<=\d)([mun]?s)ecs?$", re.ASCII)
_GEMODEL = ("p", "r", "1-h", "1-k")
_STATE = ("p13", "p31", "p32", "p23", "p14")

_REFUSED = {
    "limit": "limit counts packets on the wire too; write queue: {limit: …}, which counts those that wait",
    "slot": "slots cannot be written; a rate that varies is a trace:",
    "ecn": "write queue: {discipline: codel, ecn: true}, which marks where the queue is",
    "seed": "the run's own seed: counts",
}


def parse_netem(value: object) -> object:
    """Reads the text into the fields of a direction, each as text; what is not text is taken as it is.

    Raises:
        ValueError: a word that netem does not know, is written twice, or lacks its value.
    """
    if not isinstance(value, str):
        return value
    words = [_TC_TIME.sub(r"\1", word) for word in value.split()]
    if words[:1] == ["netem"]:
        words = words[1:]
    if not words:
        raise ValueError("empty; write for example delay 10ms 2ms loss 1%")
    return _Reader(words).read()


class _Reader:
    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.fields: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        known: dict[str, Callable[[], None]] = {
            "delay": self.delay,
            "latency": self.delay,
            "jitter": lambda: self.within("delay", "jitter"),
            "distribution": lambda: self.within("delay", "distribution"),
            "loss": self.loss,
            "drop": self.loss,
            "duplicate": lambda: self.chance("duplicate"),
            "corrupt": lambda: self.chance("corrupt"),
            "reorder": lambda: self.chance("reorder"),
            "gap": lambda: self.within("reorder", "gap"),
            "rate": self.rate,
        }
        while self.words:
            word = self.words.pop(0)
            if word in _REFUSED:
                raise ValueError(f"{word}: {_REFUSED[word]}")
            if word not in known:
                hint = syntax.did_you_mean(word, known) or f"; known: {', '.join(known)}"
                raise ValueError(f"{word}: not a word of netem{hint}")
            known[word]()
        return self.fields

    def put(self, field: str, value: Any) -> None:
        if field in self.fields:
            raise ValueError(f"{field}: written twice")
        self.fields[field] = value

    def within(self, field: str, part: str) -> None:
        parts = self.fields.setdefault(field, {})
        if part in parts:
            raise ValueError(f"{part}: written twice")
        parts[part] = self.need(f"a {part}")

    def need(self, what: str) -> str:
        if not self.words:
            raise ValueError(f"{what} is missing at the end")
        return self.words.pop(0)

    def values(self, maximum: int) -> list[str]:
        """The next words as long as they are quantities."""
        found: list[str] = []
        while self.words and len(found) < maximum and _VALUE.match(self.words[0]):
            found.append(self.words.pop(0))
        return found

    def delay(self) -> None:
        mean = self.need("a delay")
        parts = dict(zip(("jitter", "correlation"), self.values(2), strict=False))
        self.put("delay", {"mean": mean, **parts})

    def rate(self) -> None:
        self.put("rate", self.need("a rate"))
        if overhead := self.values(3):
            raise ValueError(
                f"rate: {overhead[0]}: overhead and cells cannot be written; frames have 14 bytes of header"
            )

    def chance(self, field: str) -> None:
        probability = self.need("a percentage")
        parts = dict(zip(("correlation",), self.values(1), strict=False))
        self.put(field, {"probability": probability, **parts, **self.fields.pop(field, {})})

    def loss(self) -> None:
        model = self.need("a loss")
        if model in ("gemodel", "state"):
            names = _GEMODEL if model == "gemodel" else _STATE
            parts = dict(zip(names, self.values(len(names)), strict=False))
            if not parts:
                raise ValueError(f"loss {model}: needs at least {names[0]}, such as loss {model} 1%")
            self.put("loss", {model: parts})
            return
        value = self.need("a percentage") if model == "random" else model
        if not _VALUE.match(value):
            raise ValueError(f"loss {units.shown(value)}: not a model of loss; use a percentage, gemodel or state")
        self.put("loss", {"random": value, **dict(zip(("correlation",), self.values(1), strict=False))})
