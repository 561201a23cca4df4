"""An auction service of two tiers, and its clients, after what DieCast (NSDI'08, 4.3) says of RUBiS.

python auction.py fill|web|load SETTINGS [NUMBER]

A web server makes a page of what it reads in its database, which is Redis, or writes there. A load generator has many
sessions at a time, each of which asks for a page, waits for it, thinks for a while, and goes on to a page that this one
leads to. Sessions begin one after the other while the service warms up. Which pages a session asks for, and how long
it thinks, is drawn from its number, so that it is the same in each run.

SETTINGS are JSON: how many `users` there are, and as many items; the `database` of each web server and the `web` server
of each generator; how many `sessions` a generator has, which think for `think_s` in the mean; `warm_s`, `run_s` and
`down_s`; how many `page_hashes` a web server computes for a page.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tiers import DATABASE_PORT, commands, hash_often

PORT = 8080
CATEGORIES, ON_A_PAGE = 20, 20
LONGEST_THINKING = 10
"""Times the mean."""
TIMEOUT_S = 60
FILL_AT_ONCE = 2000

NEXT: dict[str, dict[str, int]] = {
    "home": {"browse": 75, "sell": 12, "about": 13},
    "browse": {"search": 100},
    "search": {"item": 60, "search": 25, "browse": 15},
    "item": {"bid": 50, "history": 15, "user": 20, "search": 15},
    "history": {"bid": 40, "item": 40, "search": 20},
    "user": {"comment": 35, "item": 35, "search": 30},
    "about": {"item": 50, "home": 50},
    "bid": {"store_bid": 100},
    "store_bid": {"search": 60, "home": 30, "about": 10},
    "comment": {"store_comment": 100},
    "store_comment": {"item": 40, "search": 40, "home": 20},
    "sell": {"store_item": 100},
    "store_item": {"browse": 50, "home": 50},
}
"""By page, where sessions go from it, in percent."""
WRITES = {"store_bid", "store_comment", "store_item"}


class Database:
    """One connection to Redis."""

    def __init__(self, host: str) -> None:
        self.stream = socket.create_connection((host, DATABASE_PORT)).makefile("rwb")

    def ask(self, *sent: str) -> list[Any]:
        """Sends commands at once, words apart by spaces, and returns their replies."""
        return commands(self.stream, [command.encode().split(b" ") for command in sent])

    def change(self, *sent: str) -> None:
        """Does all of these, or nothing, and knows that they are on the disk."""
        self.ask("MULTI", *sent, "EXEC")


def page(database: Database, name: str, item: int, user: int, category: int, offset: int) -> list[Any]:
    """What is read for that page, in rows; what is written first, for those that write."""
    ask = database.ask
    if name == "store_bid":
        database.change(f"LPUSH bids:{item} {user}", f"HINCRBY item:{item} bids 1", f"HINCRBY item:{item} price 1")
    elif name == "store_comment":
        database.change(f"LPUSH comments:{user} good-{item}", f"HINCRBY user:{user} rating 1")
    elif name == "store_item":
        [new] = ask("INCR items")
        database.change(f"HSET item:{new} {item_fields(new, user)}", f"LPUSH category:{category} {new}")
    if name in {"browse", "sell", "home"}:
        return ask(*(f"LLEN category:{one}" for one in range(CATEGORIES)))
    if name == "search":
        [items] = ask(f"LRANGE category:{category} {offset} {offset + ON_A_PAGE - 1}")
        return ask(*(f"HMGET item:{one.decode()} name price bids" for one in items)) if items else []
    if name == "history":
        [users] = ask(f"LRANGE bids:{item} 0 {ON_A_PAGE - 1}")
        return ask(*(f"HMGET user:{one.decode()} name rating" for one in users)) if users else []
    if name in {"user", "comment", "about", "store_comment"}:
        return ask(f"HGETALL user:{user}", f"LRANGE comments:{user} 0 {ON_A_PAGE - 1}")
    return ask(f"HGETALL item:{item}", f"HGETALL user:{user}")


def item_fields(item: int, user: int) -> str:
    """Of an item that is new."""
    return f"name thing-{item} seller {user} price {item % 100} bids 0 about {'x' * 200}"


def as_html(name: str, rows: list[Any]) -> bytes:
    """The page."""
    found = [f"<html><head><title>{name}</title></head><body><table>"]
    for row in rows:
        cells = row if isinstance(row, list) else [row]
        texts = (cell.decode() if isinstance(cell, bytes) else str(cell) for cell in cells)
        found.append("<tr>" + "".join(f"<td>{text}</td>" for text in texts) + "</tr>")
    return "\n".join([*found, "</table></body></html>"]).encode()


def serve(settings: dict[str, Any], number: int) -> None:
    """Makes pages, as many at a time as are asked for; each thread has a connection to the database of its own."""
    kept: list[Database] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            given = {name: int(values[0]) for name, values in parse_qs(asked.query).items()}
            try:
                database = kept.pop()
            except IndexError:
                database = Database(settings["database"][number])
            name = asked.path[1:]
            text = as_html(name, page(database, name, **given))
            kept.append(database)
            hash_often(text[:1000], settings["page_hashes"])
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 512
        daemon_threads = True

    Server(("", PORT), Handler).serve_forever()


def fill(settings: dict[str, Any]) -> None:
    """Puts users and items into the database of this node."""
    database, count = Database("localhost"), settings["users"]
    users = (f"HSET user:{user} name user-{user} rating 0 region {user % 62}" for user in range(count))
    items = (f"HSET item:{item} {item_fields(item, item)}" for item in range(count))
    bids = (f"RPUSH bids:{item} {(item * 7) % count} {(item * 13) % count}" for item in range(count))
    categories = (f"LPUSH category:{item % CATEGORIES} {item}" for item in range(count))
    for made in (users, items, bids, categories):
        while some := list(islice(made, FILL_AT_ONCE)):
            database.ask(*some)
    database.ask(f"SET items {count}")


def fetch(web: str, path: str) -> bool:
    """Asks for a page; whether it came."""
    connection = http.client.HTTPConnection(web, PORT, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return answer.status == 200


class Load:
    """The sessions of a load generator, and what they got."""

    def __init__(self, settings: dict[str, Any], number: int) -> None:
        self.settings = settings
        self.number = number
        self.web = settings["web"][number]
        self.sessions = settings["sessions"]
        self.begun_s = time.time()
        self.got: list[tuple[float, float, str, bool]] = []

    def session(self, number: int) -> None:
        """One session, which begins in its turn and does not end."""
        choice = random.Random(f"{self.number} {number}")
        think_s, users = self.settings["think_s"], self.settings["users"]
        time.sleep(self.settings["warm_s"] * number / self.sessions)
        name, user = "home", choice.randrange(users)
        item, category, offset = choice.randrange(users), choice.randrange(CATEGORIES), 0
        while True:
            path = f"/{name}?{urlencode({'item': item, 'user': user, 'category': category, 'offset': offset})}"
            begin = time.time()
            well = fetch(self.web, path)
            self.got.append((begin, time.time(), name, well))
            time.sleep(min(choice.expovariate(1 / think_s), LONGEST_THINKING * think_s))
            after = choice.choices(list(NEXT[name]), list(NEXT[name].values()))[0]
            if after == "search":
                offset = offset + ON_A_PAGE if name == "search" else 0
                category = category if name == "search" else choice.randrange(CATEGORIES)
            elif after == "item":
                item = choice.randrange(users)
            name = after

    def measure(self) -> None:
        """Lets all sessions go on for as long as is said, and prints each page: begin, time, name, success."""
        for number in range(self.sessions):
            threading.Thread(target=self.session, args=(number,), daemon=True).start()
        length_s = sum(self.settings[part] for part in ("warm_s", "run_s", "down_s"))
        time.sleep(max(0.0, self.begun_s + length_s - time.time()))
        begun_s = self.begun_s
        lines = (f"{begin - begun_s:.6f} {end - begin:.6f} {name} {well:d}" for begin, end, name, well in self.got)
        print("\n".join(lines), flush=True)
        os._exit(0)


def main() -> None:
    """Does what the first argument says."""
    role, settings = sys.argv[1], json.loads(sys.argv[2])
    if role == "fill":
        fill(settings)
    elif role == "web":
        serve(settings, int(sys.argv[3]))
    else:
        Load(settings, int(sys.argv[3])).measure()


if __name__ == "__main__":
    main()
