"""Programs at a terminal of their own, as people use them."""

from __future__ import annotations

import codecs
import os
import pty
import select
import subprocess
import termios
from pathlib import Path
from typing import Self

from tests.conftest import PATIENCE_HOST_S, command_line, environment


class TypedAt:
    """`dilaton` with these arguments at a terminal; it ends with the context, whatever became of the test."""

    def __init__(self, *arguments: str | Path) -> None:
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(self.master, (33, 77))
        self.settings = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            command_line(*arguments),
            env=environment(),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        self.slave = slave
        self.shown = ""
        # A read may end in the middle of a character.
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def expect(self, text: str) -> str:
        """Waits until `text` is shown; returns, and forgets, what was shown up to it."""
        while text not in self.shown:
            assert select.select([self.master], [], [], PATIENCE_HOST_S)[0], f"shown, without {text!r}: {self.shown!r}"
            self.shown += self.decoder.decode(os.read(self.master, 4096))
        before, self.shown = self.shown.split(text, 1)
        return before

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait(self) -> int:
        return self.process.wait(PATIENCE_HOST_S)

    def is_restored(self) -> bool:
        return termios.tcgetattr(self.slave) == self.settings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.wait()
        os.close(self.master)
        os.close(self.slave)
