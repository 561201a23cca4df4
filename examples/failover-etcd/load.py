"""load.py SECONDS: has db1 lead, then writes keys by whichever server answers; tells what was refused or lost."""

import base64
import http.client
import json
import sys
import time
import urllib.request

SERVERS = [f"db{number}" for number in range(1, 6)]
EVERY_S, PATIENCE_S = 0.05, 0.3

NO_ANSWER = (OSError, http.client.HTTPException, ValueError)
"""No connection, one that ends in the middle of an answer, or half of one."""


def ask(server, path, patience_s=PATIENCE_S, **fields):
    request = urllib.request.Request(f"http://{server}:2379/v3/{path}", json.dumps(fields).encode())
    with urllib.request.urlopen(request, timeout=patience_s) as reply:
        return json.load(reply)


def text(words):
    return base64.b64encode(words.encode()).decode()


def until(done):
    """Asks again until an answer comes."""
    while True:
        try:
            if (answer := done()) is not None:
                return answer
        except NO_ANSWER:
            pass
        time.sleep(0.1)


def led_by(server):
    """Has this server lead the others."""
    status = {name: ask(name, "maintenance/status") for name in SERVERS}
    wanted = status[server]["header"]["member_id"]
    leader = status[server].get("leader")
    if leader == wanted:
        return True
    for name in SERVERS:
        if status[name]["header"]["member_id"] == leader:
            ask(name, "maintenance/transfer-leadership", 2.0, targetID=wanted)
    return None


def main():
    until(lambda: led_by("db1"))
    print("db1 leads", flush=True)
    begin, written, refused, server = time.monotonic(), [], 0, 0
    worst, last, number = 0.0, begin, 0
    while (now := time.monotonic()) < begin + float(sys.argv[1]):
        number += 1
        operation = {"begin": now, "ok": True}
        try:
            ask(SERVERS[server], "kv/put", key=text(f"key-{number}"), value=text("x"))
            written.append(number)
        except NO_ANSWER:
            refused += 1
            operation["ok"] = False
            server = (server + 1) % len(SERVERS)
        done = time.monotonic()
        worst = max(worst, done - last)
        last = done if operation["ok"] else last
        print(json.dumps(operation | {"end": done}), flush=True)
        time.sleep(max(0.0, begin + EVERY_S * number - time.monotonic()))
    time.sleep(1)
    there = until(lambda: ask("db3", "kv/range", 5.0, key=text("key-"), range_end=text("key."), keys_only=True))
    keys = {base64.b64decode(one["key"]).decode() for one in there["kvs"]}
    lost = sum(f"key-{n}" not in keys for n in written)
    print(json.dumps({"written": len(written), "outage": round(worst, 3), "refused": refused, "lost": lost}))


main()
