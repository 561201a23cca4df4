"""A laptop of the tests' own, with a WireGuard that is not ours: wireguard-go, in namespaces that need no root.

`python -m tests.functional.server.laptop CONFIGURATION COMMAND` becomes root of new namespaces (unshare(1) has made
them), brings up a tunnel by a configuration as wg-quick does, and executes a shell's command there; its exit status
is that command's. The network there has no way out but one: datagrams for the address of the configuration's endpoint
come to a socket here, and go on by standard input, a socket of datagrams that whoever has started this has the other
end of.
"""

from __future__ import annotations

import configparser
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

NAME = "laptop0"


def main(path: str, command: str) -> int:
    told = configparser.ConfigParser()
    told.optionxform = str  # type: ignore[assignment,method-assign]
    told.read(path)
    ip("link", "set", "lo", "up")
    outside = socket.socket(fileno=os.dup(0))
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.bind(("127.0.0.1", 0))
    threading.Thread(target=carry, args=(here, outside), daemon=True).start()
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    tunnel = subprocess.Popen(["wireguard-go", "-f", NAME], env=os.environ | {"WG_PROCESS_FOREGROUND": "1"})
    try:
        while not Path(f"/run/wireguard/{NAME}.sock").exists():
            assert tunnel.poll() is None
            time.sleep(0.01)
        interface, peer = dict(told["Interface"]), dict(told["Peer"])
        address, mtu = interface.pop("Address"), interface.pop("MTU")
        peer["Endpoint"] = f"127.0.0.1:{here.getsockname()[1]}"
        sections = (("Interface", interface), ("Peer", peer))
        text = "".join(f"[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in of.items()) for name, of in sections)
        subprocess.run(["wg", "setconf", NAME, "/dev/stdin"], input=text, text=True, check=True)
        for one in address.split(", "):
            ip("address", "add", one, "dev", NAME)
        ip("link", "set", NAME, "mtu", mtu, "up")
        for network in peer["AllowedIPs"].split(", "):
            ip("route", "add", network, "dev", NAME)
        return subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, check=False).returncode
    finally:
        tunnel.kill()
        tunnel.wait()


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def carry(here: socket.socket, outside: socket.socket) -> None:
    """Datagrams both ways, for ever."""
    here_first, where = here.recvfrom(1 << 16)
    outside.send(here_first)

    def back() -> None:
        while True:
            here.sendto(outside.recv(1 << 16), where)

    threading.Thread(target=back, daemon=True).start()
    while True:
        outside.send(here.recv(1 << 16))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
