"""What can be wrong with what a face asks for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dilaton.run.control.errors import ControlError


class RequestError(ControlError):
    """What was asked for cannot be done, as it was asked for.

    Attributes:
        message: what is wrong and what would be right; a line per problem.
        field: the field of the request that is wrong, which a face names as it spells it; empty: none by itself.
        word: what the field says, where a face may have an option of its own for that; empty: it has none.
    """

    def __init__(self, message: str, field: str = "", word: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message, "argument")
        self.message = message
        self.field = field
        self.word = word


@contextlib.contextmanager
def refusing(*kinds: type[Exception], field: str = "") -> Iterator[None]:
    """Takes errors of these kinds for mistakes in a field of the request, in words of their own.

    Raises:
        RequestError: there was one.
    """
    try:
        yield
    except kinds as error:
        raise RequestError(str(error), field) from error
