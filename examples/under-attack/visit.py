"""visit.py SERVER SECONDS: asks a server for something small every 100 ms, and says when, and whether it answered."""

import json
import socket
import sys
import time

PATIENCE_S = 0.5


def visit(server):
    with socket.create_connection((server, 80), timeout=PATIENCE_S) as connection:
        connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
        return connection.recv(100).startswith(b"HTTP/1.0 200")


def main():
    server, end = sys.argv[1], time.time() + float(sys.argv[2])
    due = time.time()
    while (begin := time.time()) < end:
        try:
            ok = visit(server)
        except OSError:
            ok = False
        print(json.dumps({"begin": begin, "end": time.time(), "ok": ok}), flush=True)
        due = max(due + 0.1, time.time())
        time.sleep(max(0.0, due - time.time()))


main()
