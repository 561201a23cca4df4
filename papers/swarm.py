"""What the reproductions with BitTorrent share: a file and its torrent, the programs of a swarm, when each was done.

Peers are aria2's, of Debian's package; the tracker is a small one of ours. All peers begin at once, look for others at
the tracker alone, and go on serving others until the last one has everything.
"""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path
from typing import Any

from swarm_tracker import PORT

TRACKER = Path(__file__).resolve().parent / "swarm_tracker.py"
PIECE_BYTES = 256 * 1024
BEGIN = "1s"
"""When peers begin, the tracker being ready."""

NOW = "date +%s.%N"
"""What a peer prints when it begins, and when it has everything."""

PEER = (
    "exec aria2c --no-conf --quiet --disable-ipv6=true --async-dns=false --enable-dht=false --bt-enable-lpd=false "
    "--enable-peer-exchange=false --follow-torrent=mem --file-allocation=none --listen-port=6881 --seed-ratio=0 "
    "--bt-max-peers=0"
)
"""Without what would look for peers elsewhere, and without a limit of how many there are."""


def make_torrent(place: Path, size_bytes: int) -> Path:
    """Writes a file that cannot be compressed, the same each time, and its torrent beside it; once."""
    data, torrent = place / "data", place / "data.torrent"
    place.mkdir(parents=True, exist_ok=True)
    if torrent.is_file() and data.is_file() and data.stat().st_size == size_bytes:
        return torrent
    content = random.Random(size_bytes).randbytes(size_bytes)
    pieces = b"".join(
        hashlib.sha1(content[begin : begin + PIECE_BYTES], usedforsecurity=False).digest()
        for begin in range(0, size_bytes, PIECE_BYTES)
    )
    data.write_bytes(content)
    about = b"d6:lengthi%de4:name4:data12:piece lengthi%de6:pieces%d:%se" % (
        size_bytes,
        PIECE_BYTES,
        len(pieces),
        pieces,
    )
    announce = f"http://tracker:{PORT}/announce".encode()
    done = place / "done.sh"
    done.write_text(f"#!/bin/sh\n{NOW}\n")
    done.chmod(0o755)
    torrent.write_bytes(b"d8:announce%d:%s4:info%se" % (len(announce), announce, about))
    return torrent


def programs(peers: list[str], seeder: str, torrent: Path) -> list[dict[str, Any]]:
    """What runs: the tracker on the node of that name, a peer on each of these nodes, one of which has the file.

    The tracker is what the run waits for.
    """
    count = len(peers) - 1
    command = ["python3", str(TRACKER), str(count)]
    runs: list[dict[str, Any]] = [{"on": "tracker", "name": "tracker", "exec": command, "ready": {"tcp": str(PORT)}}]
    for peer in peers:
        how = f"--dir={torrent.parent} --bt-seed-unverified=true" if peer == seeder else "--dir=/srv"
        command_of = f"{NOW}; {PEER} {how} --on-bt-download-complete={torrent.parent / 'done.sh'} {torrent}"
        one = {"on": peer, "name": f"peer-{peer}", "exec": ["sh", "-c", command_of], "start": BEGIN}
        runs.append(one | {"background": "true", "after": "tracker"})
    return runs


def files(torrent: Path) -> list[str]:
    """The directories that the nodes have to see."""
    return [str(torrent.parent), str(TRACKER.parent)]


def transfer_times_s(record: dict[str, Any], out: Path, seeder: str) -> dict[str, float]:
    """By node, the virtual seconds from the start of a peer until it had everything, by its own clock."""
    found = {}
    for process in record["processes"]:
        node = process["node"]
        if not process["name"].startswith("peer-") or node == seeder:
            continue
        text = (out / "nodes" / node / f"{process['name']}.stdout").read_text().split()
        if len(text) != 2:
            sys.exit(f"{out}: {node} did not say when it had everything")
        found[node] = float(text[1]) - float(text[0])
    return found
