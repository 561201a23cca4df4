"""A tracker for BitTorrent, by HTTP: it tells peers of each other, and ends when so many have come to have everything.

python3 swarm_tracker.py COMPLETE
"""

from __future__ import annotations

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PORT = 8000
INTERVAL_S = 5
"""After which peers ask again: those that asked first have been told of few others."""


class Tracker(ThreadingHTTPServer):
    """Who takes part."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, complete: int) -> None:
        super().__init__(("", PORT), Announcement)
        self.lock = threading.Lock()
        self.peers: dict[tuple[str, int], None] = {}
        self.seeders: set[tuple[str, int]] = set()
        self.complete: set[tuple[str, int]] = set()
        self.wanted = complete

    def announced(self, peer: tuple[str, int], event: str, left: int) -> bytes:
        """Takes note of a peer that lacks so many bytes, and returns all others in six bytes each."""
        with self.lock:
            others = [other for other in self.peers if other != peer]
            self.peers[peer] = None
            if left == 0 and event == "started":
                self.seeders.add(peer)
            elif left == 0 and peer not in self.seeders:
                # Not only where the event is `completed`: that announcement may be lost.
                self.complete.add(peer)
                if len(self.complete) >= self.wanted:
                    threading.Thread(target=self.shutdown).start()
        return b"".join(socket.inet_aton(address) + port.to_bytes(2, "big") for address, port in others)


class Announcement(BaseHTTPRequestHandler):
    """One request of a peer."""

    server: Tracker

    def do_GET(self) -> None:
        """Answers it, in the encoding of BitTorrent."""
        said = parse_qs(urlsplit(self.path).query, encoding="latin-1")
        peer = (self.client_address[0], int(said["port"][0]))
        peers = self.server.announced(peer, said.get("event", [""])[0], int(said["left"][0]))
        body = b"d8:intervali%de5:peers%d:%se" % (INTERVAL_S, len(peers), peers)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    Tracker(int(sys.argv[1])).serve_forever()
