"""What can go wrong between Dilaton and the machine that it runs on."""

from __future__ import annotations


class HostLacksError(Exception):
    """The host lacks something that a run needs.

    Attributes:
        what: what is missing, a sentence without a full stop.
        fix: a command that helps.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; to fix it: {fix}")
        self.what = what
        self.fix = fix


class GuestError(Exception):
    """A guest did not start, ended by itself, or answered with something that it must not say."""


class MachineLostError(GuestError):
    """A machine of a run is gone, or cannot be reached any more, and with it the run.

    Attributes:
        machine: By which messages name it.
    """

    def __init__(self, machine: str, what: str) -> None:
        super().__init__(what)
        self.machine = machine
