"""load.py NAME SENTINEL SECONDS: writes to whichever server is the primary; tells for how long it could not, and what
was lost."""

import json
import socket
import sys
import time


def ask(address, *words):
    """The answer to one command, in Redis's own protocol: a text, or a list of texts."""
    text = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in (w.encode() for w in words))
    with socket.create_connection(address, timeout=0.5) as server:
        server.sendall(b"*%d\r\n%s" % (len(words), text))
        lines = server.recv(4096).decode().split("\r\n")
    if lines[0].startswith("-"):
        raise OSError(lines[0])
    if lines[0].startswith("*"):
        return lines[2:-1:2]
    return lines[1] if lines[0].startswith("$") else lines[0][1:]


def main():
    name, sentinel, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    begin = time.monotonic()
    written, worst, last, primaries = [], 0.0, begin, []
    number = 0
    while (now := time.monotonic()) < begin + seconds:
        try:
            host, port = ask((sentinel, 26379), "SENTINEL", "get-master-addr-by-name", "store")
            ask((host, int(port)), "SET", f"{name}-{number}", "x")
            written.append(number)
            worst, last = max(worst, now - last), now
            if not primaries or primaries[-1] != host:
                primaries.append(host)
        except OSError:
            pass
        number += 1
        time.sleep(max(0.0, begin + 0.1 * number - time.monotonic()))
    time.sleep(5)  # until all sentinels agree again
    host, port = ask((sentinel, 26379), "SENTINEL", "get-master-addr-by-name", "store")
    lost = sum(ask((host, int(port)), "GET", f"{name}-{n}") != "x" for n in written)
    print(json.dumps({"written": len(written), "outage": round(worst, 3), "lost": lost, "primaries": primaries}))


main()
