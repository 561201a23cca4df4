"""Tries a server where it is installed: starts it, gets its page, and has a lab run there. `./dev systems container`.

Takes the server's command line; of the standard library alone, since it runs with the Python of another system.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request

PATIENCE_HOST_S = 300.0

LAB = """\
name: tiny
nodes: {a: {}, b: {}}
links: [a -- b]
run:
  - {on: a, name: asked, exec: ping -c 3 b}
expect:
  - asked.loss == 0%
"""


def main(command: list[str]) -> int:
    """Serves with this command as long as it takes; the status is 1 when the run did not pass."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            server.stdout.readline()
            link = server.stdout.readline().strip().rpartition(": ")[2]
            url, _, once = link.partition("/login?once=")
            page = urllib.request.urlopen(f"{url}/").read()
            print(f"a page of {len(page)} bytes")
            state, verdict = ran(url, once)
            print(f"the run has {state}: {verdict}")
        finally:
            server.terminate()
    return int(state != "finished")


def ran(url: str, once: str) -> tuple[str, str]:
    """What has become of a run of the lab."""
    session = urllib.request.Request(f"{url}/api/v1/session", json.dumps({"once": once}).encode())
    session.add_header("Content-Type", "application/json")
    cookie = urllib.request.urlopen(session).headers["Set-Cookie"].partition(";")[0]

    def ask(method: str, path: str, body: object = None) -> dict[str, str]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Cookie": cookie, "Origin": url, "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{url}/api/v1{path}", data, headers, method=method)
        said: dict[str, str] = json.load(urllib.request.urlopen(asked))
        return said

    lab = ask("POST", "/labs", {"name": "tiny", "text": LAB})["lab"]
    run = ask("POST", f"/labs/{lab}/runs", {})["run"]
    deadline = time.monotonic() + PATIENCE_HOST_S
    while (shown := ask("GET", f"/runs/{run}"))["state"] not in ("finished", "failed", "refused", "aborted"):
        assert time.monotonic() < deadline, shown
        time.sleep(1)
    return shown["state"], shown.get("reason") or str(ask("GET", f"/runs/{run}/record").get("verdict"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
