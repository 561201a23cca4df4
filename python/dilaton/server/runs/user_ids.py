"""A user id of its own for each person's runs, given by a server that is root.

**Problem.** Runs that have the server's account read what that reads. Jail and guest keep them from the server's data,
so whoever gets out of both has everybody's.

**Rule.** A person is given a user id at their first run, out of a range that is nobody else's, and keeps it. All
processes of their runs have it, and no other group than that of the same number. What is a run's own belongs to it, and
to the server's group, so that workers read it and other people do not. The directories above belong to the server, and
who knows what is in them may pass them, but not list them: there is nothing else there that others may open. A saved
lab is found by its digest, which nobody guesses. Kernels and images are everybody's, by links from a home that the
run has of its own.

What root changes in a directory it changes before that is a run's, the inner ones first: whoever has a directory may
put a link in the place of what is in it.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from dilaton.host.here.uml import kernels
from dilaton.host.processes import PYTHON
from dilaton.images.store import default_directory as images_directory
from dilaton.run.control.errors import ControlError
from dilaton.server.database.store import Store
from dilaton.server.database.tables import Person
from dilaton.service.launch import User

PASSED, READ, LISTED = 0o001, 0o004, 0o005
"""What others may: go through a directory, read a file, list a directory."""

PRIVATE = 0o2750
"""The mode of what is a run's own: what is made there has its group, too."""

OF_LINKS = Path("/proc/sys/fs/protected_hardlinks")

HOME = "home"

SHARED = {".cache/dilaton/kernels": kernels.cache, ".config/dilaton/kernel": kernels.choice_file}
"""What runs find in their home, and where it is."""

PROBE = "import os, sys, dilaton.service.runner; [os.stat(path + '/.') for path in sys.argv[1:]]"

PROBE_HOST_S = 60.0


@dataclass(frozen=True)
class UserIds:
    """A range of user ids for runs; the groups of the same numbers go with them."""

    first: int
    count: int

    @property
    def all(self) -> range:
        """All of them."""
        return range(self.first, self.first + self.count)

    def check(self) -> None:
        """Looks whether runs may be given them.

        Raises:
            ValueError: this process, or this machine, gives them to nobody, or they are somebody's.
        """
        if os.geteuid() != 0:
            raise ValueError("takes a server that runs as root, which alone gives processes a user id")
        users = ((user.pw_uid, "user", user.pw_name) for user in pwd.getpwall())
        groups = ((group.gr_gid, "group", group.gr_name) for group in grp.getgrall())
        for number, kind, name in (*users, *groups):
            if number in self.all:
                raise ValueError(f"{number} is the {kind} {name}; name a range that nobody has")
        if OF_LINKS.read_text().strip() == "0":
            raise ValueError(
                "takes a machine on which nobody gives names to files of others: sysctl -w fs.protected_hardlinks=1"
            )


def refuse_hopeless(ids: UserIds, directory: Path) -> None:
    """Looks whether runs reach what they need: Python, this package, the server's data, kernels and images.

    Raises:
        ValueError: they do not.
    """
    user = User(ids.first, Path("/"))
    places = (directory, kernels.cache(), images_directory())
    command = [*PYTHON, "-c", PROBE, *(str(place) for place in places if place.exists())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=PROBE_HOST_S, **user.options)
    except OSError as error:
        said = str(error)
    else:
        if done.returncode == 0:
            return
        said = (done.stderr.strip().splitlines() or ["no answer"])[-1]
    raise ValueError(
        f"user {ids.first} does not reach what its runs need: {said}; put it where all users may pass the directories"
    )


def user_of(store: Store, ids: UserIds, person: str, directory: Path) -> User:
    """Whose a run of a person is to be, with what it has of its own in a directory of the server's.

    Raises:
        ControlError: there is no user id left.
    """
    with store.writing() as session:
        uid = uid_of(session, person, ids)
    show_images()
    return hand_over(directory, uid)


def refuse_anothers(run_dir: Path, user: User) -> None:
    """Looks whether what another run has left is a user's.

    Raises:
        ControlError: it is not.
    """
    owner = run_dir.stat().st_uid
    if owner != user.uid:
        raise ControlError(f"the run that it repeats is of user {owner}, whose files user {user.uid} cannot read")


def uid_of(session: Session, person: str, ids: UserIds) -> int:
    """The user id of a person's runs, given to them if they have none of these yet.

    Raises:
        ControlError: there is none left.
    """
    row = session.scalars(select(Person).where(Person.name == person)).one()
    if row.uid is None or row.uid not in ids.all:
        given = set(session.scalars(select(Person.uid)))
        free = (uid for uid in ids.all if uid not in given)
        if (uid := next(free, None)) is None:
            raise ControlError(f"run_as: all {ids.count} user ids are given to people; the server has to have more")
        row.uid = uid
    return row.uid


def hand_over(directory: Path, uid: int) -> User:
    """Makes what a run has of its own in a directory of the server's; whose it is then."""
    for place in (directory.parent, directory):
        _let_others(place, PASSED)
    home = directory / HOME
    for name, where in (*SHARED.items(), (".local/share/dilaton/images", images_directory)):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(where().absolute())
    places = [directory / "files", directory / "run"]
    for place in places:
        place.mkdir()
    inner = (Path(folder) for folder, _, _ in os.walk(home, topdown=False))
    for place in (*inner, *places):
        place.chmod(PRIVATE)
        os.chown(place, uid, os.getegid())
    return User(uid, home)


def show_saved(store: Path, digest: str) -> None:
    """Lets a run read a saved lab whose digest it knows."""
    tree = store / "trees" / digest
    for place in (store.parent, store, tree.parent):
        _let_others(place, PASSED)
    _show(tree)


def show_images() -> None:
    """Lets runs read the images that there are."""
    store = images_directory()
    if not store.is_dir():
        return
    _let_others(store.parent, PASSED)
    _let_others(store, LISTED)
    for path in store.glob("*.json"):
        _let_others(path, READ)
    for place in (store / "blobs", store / "roots"):
        _show(place)


def _show(top: Path) -> None:
    for folder, _, names in os.walk(top):
        _let_others(Path(folder), LISTED)
        for name in names:
            path = Path(folder, name)
            if stat.S_ISREG(path.lstat().st_mode):
                _let_others(path, READ)


def _let_others(path: Path, what: int) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & what != what:
        path.chmod(mode | what)
