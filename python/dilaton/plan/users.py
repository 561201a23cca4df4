"""Whether the users are there as whom programs are to run.

A node begins with the machine's own /etc/passwd, so whoever is not there cannot run what starts with the run. What
starts later may run as a user whom a program of the lab has added meanwhile, and a disk with an image may bring users
of its own, as does an image that a node has for its file tree.
"""

from __future__ import annotations

from collections.abc import Collection

from dilaton.lab.errors import LabError, Problem, unknown
from dilaton.lab.model import Lab

NUMBER_MAX = 2**32 - 1


def users_in(passwd: str) -> frozenset[str]:
    """The names in the text of an /etc/passwd."""
    accounts = [line.split(":") for line in passwd.splitlines()]
    return frozenset(fields[0] for fields in accounts if len(fields) > 3)


def check_users(lab: Lab, known: Collection[str] | None) -> None:
    """Refuses programs that start with the run as users who are not there.

    Args:
        lab: The lab.
        known: The names of the machine's users; None: not asked. A number needs no name.

    Raises:
        LabError: Naming each of them.
    """
    if known is None:
        return
    problems = []
    for number, process in enumerate(lab.run):
        disk = lab.nodes[process.on].disk
        is_first = not process.after and process.start_ns == 0 and (disk is None or disk.image is None)
        is_first &= lab.nodes[process.on].image == "host"
        if is_first and process.user not in known and not _is_number(process.user):
            message = f"{unknown('user', process.user, sorted(known))}; a node has the users of this machine"
            problems.append(Problem("", 0, 0, f"run[{number}].user", message))
    if problems:
        raise LabError(problems)


def _is_number(user: str) -> bool:
    return user.isascii() and user.isdecimal() and int(user) <= NUMBER_MAX
