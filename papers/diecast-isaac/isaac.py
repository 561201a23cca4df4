"""Isaac, the service of three tiers of DieCast (NSDI'08, 4.4): clients, front ends, application servers, databases.

python isaac.py fill|application|front|client SETTINGS [NUMBER]

A client sends a request and waits for what comes back. The front end asks some application servers, one after the
other, each of which reads from and writes to a database and computes hashes; then it computes hashes of all that it
got. Which servers a request touches is drawn from its number, so that it is the same in each run. Databases are Redis.
What cannot be reached is tried again a second later.

SETTINGS are JSON: the names of `databases`, `applications` and `fronts`; per client the number of `requests` and the
mean `pause_s` between them; per request the number of `calls` of application servers, and per call the `reads` and
`writes` with `write_bytes`; `application_hashes` and `front_hashes`.
"""

from __future__ import annotations

import json
import random
import socket
import socketserver
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tiers import DATABASE_PORT, commands, hash_often

PORT = 7000
KEYS = 1000
READ_BYTES = 1024


def use_database(settings: dict[str, Any], host: str, choice: random.Random) -> bytes:
    """Reads and writes; returns what was read."""
    with socket.create_connection((host, DATABASE_PORT)) as connection, connection.makefile("rwb") as stream:
        keys = [b"key:%d" % choice.randrange(KEYS) for _ in range(settings["reads"] + settings["writes"])]
        read = [commands(stream, [(b"GET", key)])[0] for key in keys[: settings["reads"]]]
        for key in keys[settings["reads"] :]:
            commands(stream, [(b"SET", b"written:" + key, bytes(settings["write_bytes"]))])
    return b"".join(read)


def again(attempt: Any) -> Any:
    """What the attempt returns, once it can."""
    while True:
        try:
            return attempt()
        except OSError:
            time.sleep(1)


def ask(host: str, seed: str) -> dict[str, Any]:
    """Sends a request to a server, and returns its answer."""
    with socket.create_connection((host, PORT)) as connection, connection.makefile("rwb") as stream:
        stream.write(json.dumps(seed).encode() + b"\n")
        stream.flush()
        line = stream.readline()
    if not line:
        raise ConnectionError(f"{host} does not answer")
    answer: dict[str, Any] = json.loads(line)
    return answer


def answer_as_application(settings: dict[str, Any], seed: str) -> dict[str, Any]:
    """A call: what was read, and how long the database took."""
    choice = random.Random(seed)
    database = choice.choice(settings["databases"])
    begin = time.monotonic()
    read = again(lambda: use_database(settings, database, random.Random(seed)))
    database_s = time.monotonic() - begin
    hash_often(read, settings["application_hashes"])
    return {"read": read.decode(), "database_s": database_s}


def answer_as_front(settings: dict[str, Any], seed: str) -> dict[str, Any]:
    """A request: how long databases and application servers took."""
    choice = random.Random(seed)
    text, database_s, calls_s = "", 0.0, 0.0
    for number in range(settings["calls"]):
        server, part = choice.choice(settings["applications"]), f"{seed} {number}"
        begin = time.monotonic()
        answer = again(lambda server=server, part=part: ask(server, part))
        calls_s += time.monotonic() - begin
        database_s += answer["database_s"]
        text += answer["read"]
    hash_often(text.encode(), settings["front_hashes"])
    return {"database_s": database_s, "application_s": calls_s - database_s}


def serve(settings: dict[str, Any], answer: Any) -> None:
    """Answers requests, as many at a time as come."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            found = answer(settings, json.loads(self.rfile.readline()))
            self.wfile.write(json.dumps(found).encode() + b"\n")

    class Server(socketserver.ThreadingTCPServer):
        request_queue_size = 128
        allow_reuse_address = True

    with Server(("", PORT), Handler) as server:
        server.serve_forever()


def fill() -> None:
    """Puts into the database of this node what is read later."""
    with socket.create_connection(("localhost", DATABASE_PORT)) as connection, connection.makefile("rwb") as stream:
        pairs = [word for key in range(KEYS) for word in (b"key:%d" % key, b"x" * READ_BYTES)]
        commands(stream, [(b"MSET", *pairs)])


def send_requests(settings: dict[str, Any], number: int) -> None:
    """Sends the requests of a client, and prints when each began and ended and where its time was spent."""
    choice = random.Random(number)
    front = settings["fronts"][number % len(settings["fronts"])]
    for request in range(settings["requests"]):
        time.sleep(choice.uniform(0, 2 * settings["pause_s"]))
        begin = time.time()
        answer = again(lambda request=request: ask(front, f"{number} {request}"))
        end = time.time()
        spent = end - begin - answer["application_s"] - answer["database_s"]
        print(json.dumps({"begin_s": begin, "end_s": end, "front_s": spent} | answer), flush=True)


def main() -> None:
    """Does what the first argument says."""
    role, settings = sys.argv[1], json.loads(sys.argv[2])
    if role == "fill":
        fill()
    elif role == "client":
        send_requests(settings, int(sys.argv[3]))
    else:
        serve(settings, {"application": answer_as_application, "front": answer_as_front}[role])


if __name__ == "__main__":
    main()
