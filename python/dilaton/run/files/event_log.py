"""The events of a run, in memory and in `events.jsonl`, as they happen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from dilaton.host.messages import Event
from dilaton.run.files.directory import create_file, replace_file


class EventLog:
    """What happened so far. As a context it has the file open."""

    def __init__(self, path: Path, events: list[Event], told: Callable[[Event], None]) -> None:
        """Begins a log.

        Args:
            path: The file.
            events: To which events are added too.
            told: Learns of each.
        """
        self._path = path
        self._events = events
        self._told = told
        self._keys: list[tuple[int, int]] = []

    def __enter__(self) -> EventLog:
        """This log, with its file."""
        self._file = open(create_file(self._path), "w", buffering=1)
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the file."""
        self._file.close()

    def add(self, guest: int, event: Event) -> None:
        """Something happened in a guest, given by its number."""
        self._keys.append((event.t_ns, guest))
        self._events.append(event)
        self._told(event)
        self._file.write(json.dumps(event.record()) + "\n")

    def sort(self) -> None:
        """Brings events, which came in as the host was fast, into the order of virtual time.

        They come of several guests, and of people who do something in one. Those of one guest and instant keep their
        order.
        """
        order = sorted(range(len(self._keys)), key=self._keys.__getitem__)
        if order == list(range(len(order))):
            return
        self._events[:] = [self._events[number] for number in order]
        replace_file(self._path, "".join(json.dumps(event.record()) + "\n" for event in self._events).encode())
