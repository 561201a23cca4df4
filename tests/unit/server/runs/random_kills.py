"""Random kills of a server at work: no run ends by them, and no request, approval, event or result is lost or doubled.

Three people ask without a pause: for short runs, for runs that go on until they are told to stop, and for some that
need an approval, which somebody else gives or refuses; each listens to their events. Meanwhile the server is killed
with SIGKILL after a random moment, and started again, round after round; with PostgreSQL the database is stopped and
started in between, too. Everybody asks again where no answer came, as programs do. At the end all that was asked for
is there once, with what came of it. The seed says all but the host's scheduling. `./dev server-kills` does fifty rounds
with SQLite, and as many with PostgreSQL; with `--kernel` runs have real guests, otherwise they are on a machine without
a kernel, of which there are more in the same time.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from dilaton.run.control.answers import SHOW, STOP
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client as Control
from dilaton.server.runs.life import FINAL, RunState, follows
from tests.conftest import PATIENCE_HOST_S
from tests.postgresql import Cluster, cluster, programs
from tests.unit.server.runs.server_process import Process, let_in, process
from tests.unit.server.serving import ENDLESS, LAB, Answer, Client

PEOPLE = ("ann", "ben", "eve")

ROLES = "quotas: {everyone: {disk: 1GiB}}\n"

SMALL, LARGE = "16MiB", "2GiB"
"""What runs may leave: what anybody may, and what takes an approval."""

KINDS = ((LAB, SMALL, "finished"), (ENDLESS, SMALL, "aborted"), (LAB, LARGE, "decided"))
"""What is asked for, and how that ends."""

LOST = (OSError, http.client.HTTPException)

AGAIN_HOST_S = 0.1

AT_ONCE = 3
"""Runs that each of them has asked for and that are not over yet."""

LIFE_HOST_S_MAX = 3.0
"""Of a server, after its page is there."""

ROUNDS_A_DATABASE = 3
"""After so many rounds the database is stopped and started, where it is one that can be."""


@dataclass
class Asked:
    """What somebody has asked for, and what they were told of it."""

    lab: str
    ends_as: str
    run: str = ""


@dataclass
class Work:
    """People at work, with whatever server there is at the moment."""

    begin: Callable[[], AbstractContextManager[Process]]
    """Starts a server."""
    servers: contextlib.ExitStack
    server: Process
    cookies: dict[str, str]
    labs: dict[tuple[str, str], str] = field(default_factory=dict)
    """Identities, by whose they are and their text."""
    asked: dict[str, Asked] = field(default_factory=dict)
    """By the key of a request."""
    decided: dict[str, str] = field(default_factory=dict)
    """The answers to requests for approval, by run."""
    told: dict[str, list[tuple[int, str, Any]]] = field(default_factory=dict)
    """Events, by who listened."""
    asking: list[Future[None]] = field(default_factory=list)
    others: list[Future[None]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def kill(self) -> None:
        """Kills the server, and starts another one."""
        self.server.kill()
        self.servers.close()
        self.server = self.servers.enter_context(self.begin())

    def finish(self) -> None:
        """Waits until all that was asked for has ended."""
        self.over.set()
        wait_for(self.asking)
        self.end()
        wait_for(self.others)

    def end(self) -> None:
        """Has all threads end."""
        self.over.set()
        self.done.set()
        # What wakes who listens.
        with contextlib.suppress(*LOST, AssertionError):
            for name in PEOPLE:
                self.client(name).keep()

    def client(self, name: str) -> Client:
        """Somebody, at the server of this moment."""
        settings = self.server.client.settings
        return Client(settings, {"Cookie": self.cookies[name], "Origin": settings.origin})

    def insist(self, name: str, method: str, path: str, body: Any = None) -> Answer:
        """Asks until there is an answer, and the database is there."""
        deadline = time.monotonic() + PATIENCE_HOST_S
        while True:
            with contextlib.suppress(*LOST):
                answer = self.client(name).ask(method, f"/api/v1{path}", body)
                if answer.status != 503:
                    return answer
            assert time.monotonic() < deadline, (method, path)
            time.sleep(AGAIN_HOST_S)

    def get(self, name: str, path: str) -> Any:
        """Something that there is."""
        answer = self.insist(name, "GET", path)
        assert answer.status == 200, answer
        return answer.json

    def ask_on(self, name: str, seed: int) -> None:
        """Asks for runs, until told to end; and stops those that do not end by themselves."""
        chance = random.Random(seed)
        going: list[Asked] = []
        number = 0
        while not self.over.is_set():
            text, disk, ends_as = chance.choice(KINDS)
            key = f"{name} {number}".replace(" ", "-")
            number += 1
            going.append(asked := Asked(self.labs[name, text], ends_as))
            answer = self.insist(name, "POST", f"/labs/{asked.lab}/runs", {"key": key, "max_disk": disk})
            assert answer.status == 202, answer
            asked.run = answer.json["run"]
            self.asked[key] = asked
            while len(going) >= AT_ONCE:
                going = [one for one in going if not self.is_over(name, one)]
        while going:
            going = [one for one in going if not self.is_over(name, one)]

    def is_over(self, name: str, asked: Asked) -> bool:
        """Whether nothing more becomes of a run; one that goes on for ever is told to stop once it runs."""
        state = self.get(name, f"/runs/{asked.run}")["state"]
        if asked.ends_as == "aborted" and state == "running":
            answer = self.insist(name, "POST", f"/runs/{asked.run}/stop")
            assert answer.status in (202, 409), answer
        time.sleep(AGAIN_HOST_S)
        return state in FINAL

    def decide(self, seed: int) -> None:
        """Approves and refuses, as long as somebody asks."""
        chance = random.Random(seed)
        while not self.done.is_set():
            for run in self.get("owner", "/runs?state=requested"):
                word, body = chance.choice((("approve", {}), ("refuse", {"reason": "too large"})))
                self.decided[run["run"]] = word
                answer = self.insist("owner", "POST", f"/runs/{run['run']}/{word}", body)
                # Where the answer to the first was lost the run may be over by now.
                assert answer.status in (200, 409), answer
            time.sleep(AGAIN_HOST_S)

    def listen(self, name: str) -> None:
        """Listens, and comes again with the last number whenever the connection is lost."""
        heard = self.told.setdefault(name, [])
        while not self.done.is_set():
            with contextlib.suppress(*LOST, AssertionError):
                last = str(heard[-1][0]) if heard else "0"
                with self.client(name).stream("/events", last) as events:
                    for number, kind, data in events:
                        if kind != "ready":
                            heard.append((int(number), kind, data))
                        if self.done.is_set():
                            break
            time.sleep(AGAIN_HOST_S)


@contextlib.contextmanager
def working(begin: Callable[[], AbstractContextManager[Process]], seed: int) -> Iterator[Work]:
    """People at work at a server, which they finish in the end."""
    with contextlib.ExitStack() as servers:
        server = servers.enter_context(begin())
        work = Work(begin, servers, server, {"owner": server.client.headers["Cookie"]})
        for name in PEOPLE:
            work.client("owner").api("POST", "/people", {"name": name})
            link = work.client("owner").api("POST", f"/people/{name}/link")
            work.cookies[name] = let_in(server.client.settings, link["url"].partition("?once=")[2])
            work.labs |= {(name, text): work.client(name).keep(text) for text in (LAB, ENDLESS)}
        with ThreadPoolExecutor(2 * len(PEOPLE) + 1) as threads:
            work.asking = [threads.submit(work.ask_on, name, seed * 100 + n) for n, name in enumerate(PEOPLE)]
            work.others = [threads.submit(work.decide, seed), *(threads.submit(work.listen, name) for name in PEOPLE)]
            try:
                yield work
            finally:
                work.end()


def wait_for(work: list[Future[None]]) -> None:
    """Waits for all of it, and raises what was wrong."""
    for one in work:
        one.result(PATIENCE_HOST_S)


def kill(
    directory: Path, rounds: int, seed: int, database: Cluster | None = None, *, has_kernel: bool = False
) -> Counter[str]:
    """Kills a server at work so often, and looks what has become of everything; returns how the runs have ended.

    Raises:
        AssertionError: something was lost or doubled.
    """
    chance = random.Random(seed)
    (roles := directory / "roles.yaml").write_text(ROLES)
    options = ["--roles", roles, "--postgresql", database.url if database else ""]
    options += ["--kernel"] if has_kernel else []
    with ending(directory), working(partial(process, directory / "server", *options), seed) as work:
        anchor = work.client("owner").launch(work.client("owner").keep(ENDLESS))
        work.client("owner").wait(anchor, "running")
        with Control(directory / "server" / "runs" / anchor / "run") as control:
            pid = control.request(SHOW)["pid"]
        for number in range(rounds):
            time.sleep(chance.uniform(0, LIFE_HOST_S_MAX))
            if database and number % ROUNDS_A_DATABASE == 0:
                database.stop()
                time.sleep(chance.uniform(0, 1))
                database.start()
                time.sleep(chance.uniform(0, LIFE_HOST_S_MAX))
            work.kill()
        with Control(directory / "server" / "runs" / anchor / "run") as control:
            assert control.request(SHOW)["pid"] == pid, "the run that went on all the time is the same process"
        assert work.get("owner", f"/runs/{anchor}")["state"] == "running"
        work.asked["anchor"] = Asked("", "aborted", anchor)
        while not work.is_over("owner", work.asked["anchor"]):
            pass
        work.finish()
        return looked_at(work, directory)


@contextlib.contextmanager
def ending(directory: Path) -> Iterator[None]:
    """Ends what goes on when something was wrong: no run ends with its server."""
    try:
        yield
    finally:
        for run in (directory / "server" / "runs").iterdir():
            with contextlib.suppress(ControlError), Control(run / "run") as control:
                control.request(STOP)


def looked_at(work: Work, directory: Path) -> Counter[str]:
    """What has become of all that was asked for, which is as it should be; returns how the runs have ended."""
    wanted = {asked.run: asked.ends_as for asked in work.asked.values()}
    runs = {run["run"]: run for run in pages(work, "/runs", "number")}
    assert len(wanted) == len(work.asked) and wanted.keys() == runs.keys(), "each request is one run"
    assert {path.name for path in (directory / "server" / "runs").iterdir()} == runs.keys()
    launched = [entry["path"] for entry in pages(work, "/audit?action=run.launch", "number")]
    assert sorted(launched) == sorted(run["path"] for run in runs.values()), "each was asked for once"
    for run, ends_as in wanted.items():
        state, told = runs[run]["state"], (run, runs[run]["reason"], work.decided.get(run))
        if ends_as == "decided":
            ends_as = {"approve": "finished", "refuse": "refused"}[work.decided[run]]
        assert state == ends_as, told
        assert work.get("owner", f"/runs/{run}/drawing")["nodes"], told
        journal = work.insist("owner", "GET", f"/runs/{run}/journal").body.decode()
        if state == "refused":
            assert runs[run]["reason"] == "owner: too large" and not journal, told
        else:
            assert journal.count("clock released") == 1, f"{told} began once: {journal}"
            assert work.get("owner", f"/runs/{run}/record")["state"] == state, told
    for name, heard in work.told.items():
        assert heard == events(work.client(name), heard[-1][0]), f"{name} was told all, once, in its order"
        states: dict[str, list[RunState]] = {}
        for _, kind, data in heard:
            if kind == "run":
                states.setdefault(data["run"], []).append(data["state"])
        for run, one_by_one in states.items():
            assert one_by_one[-1] == runs[run]["state"], (run, one_by_one)
            assert all(follows(before, after) for before, after in pairwise(one_by_one)), (run, one_by_one)
    return Counter(run["state"] for run in runs.values())


def pages(work: Work, path: str, number: str) -> Iterator[Any]:
    """All of a list that begins with the newest."""
    before = ""
    while page := work.get("owner", f"{path}{'&' if '?' in path else '?'}{before}"):
        yield from page
        before = f"before={page[-1][number]}"


def events(client: Client, last: int) -> list[tuple[int, str, Any]]:
    """All events up to one."""
    found = []
    with client.stream("/events", "0") as told:
        for number, kind, data in told:
            if kind != "ready":
                found.append((int(number), kind, data))
            if int(number) >= last:
                return found
    raise AssertionError("the stream has ended")


def main() -> int:
    """Kills COUNT times, by SEED, with SQLite and then with PostgreSQL, where that is installed."""
    parser = argparse.ArgumentParser(prog="./dev server-kills", description=main.__doc__)
    parser.add_argument("count", type=int, nargs="?", default=50)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--kernel", action="store_true", help="have runs with real guests")
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        databases: list[Cluster | None] = [None]
        if programs() is not None:
            databases.append(stack.enter_context(cluster()))
        for database in databases:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
            began = time.monotonic()
            ended = kill(directory, asked.count, asked.seed, database, has_kernel=asked.kernel)
            print(
                f"{'PostgreSQL' if database else 'SQLite'}: {asked.count} kills in {time.monotonic() - began:.0f} s,",
                f"load {os.getloadavg()[0]:.1f}; {ended.total()} runs, none lost or doubled:",
                ", ".join(f"{number} {state}" for state, number in sorted(ended.items())),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
