"""What a machine outside is told: a configuration as wg-quick(8) and every other WireGuard reads it."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, collapse_addresses, ip_interface, ip_network
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

MTU = 1420
"""As the node's device has it (`crates/agent/src/network/tunnel.rs`)."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

POOLS: Mapping[int, Network] = {4: IPv4Network("100.64.0.0/10"), 6: IPv6Network("fd00::/8")}
"""By the version of IP: addresses between a provider and its customers (RFC 6598), which neither labs nor homes have,
and local ones (RFC 4193), of which there are so many that nobody draws one that is another's."""

FORWARDING = {4: "net/ipv4/ip_forward", 6: "net/ipv6/conf/all/forwarding"}
"""What a node has set that forwards packets, by the version of IP."""


class WayError(ValueError):
    """A lab cannot be entered so; says what would do."""


@dataclass(frozen=True)
class Way:
    """How the lab is entered.

    Attributes:
        node: By which node.
        reached: What is reached by it: the node's addresses, or the networks of the lab where the node forwards.
        addresses: Of the machine outside, in the lab: one for each version of IP that the node has.
    """

    node: str
    reached: tuple[Network, ...]
    addresses: tuple[Address, ...]


def way_into(nodes: Sequence[Mapping[str, Any]], wanted: str | None) -> Way:
    """The way into a lab by a node, with addresses that the lab has not.

    Args:
        nodes: Those of the plan.
        wanted: The node; None: the first that forwards, else the first with an address.

    Raises:
        WayError: there is no such node, or it has no address.
    """
    networks = {str(node["name"]): list(_networks(node)) for node in nodes}
    forwarding = {
        str(node["name"]): {version for version, name in FORWARDING.items() if node["sysctls"].get(name) == "1"}
        for node in nodes
    }
    having = [name for name, found in networks.items() if found]
    if wanted is None:
        if not having:
            raise WayError("no node of the lab has an address, so there is nothing to reach")
        wanted = next((name for name in having if forwarding[name]), having[0])
    elif wanted not in networks:
        raise WayError(f"{wanted}: no such node; there are {', '.join(sorted(networks))}")
    elif not networks[wanted]:
        raise WayError(f"{wanted}: has no address; there are {', '.join(sorted(having)) or 'none that have'}")
    reached, addresses = list[Network](), list[Address]()
    for version in sorted({address.version for address, _ in networks[wanted]}):
        everywhere = [network for found in networks.values() for _, network in found if network.version == version]
        own = [ip_network(address) for address, _ in networks[wanted] if address.version == version]
        reached += _joined(everywhere if version in forwarding[wanted] else own)
        addresses.append(_free_address(POOLS[version], everywhere))
    return Way(wanted, tuple(reached), tuple(addresses))


def _networks(node: Mapping[str, Any]) -> Iterable[tuple[Address, Network]]:
    """The node's addresses, each with the network that it is in."""
    texts = [*node["loopback"], *(text for interface in node["interfaces"] for text in interface["addresses"])]
    for found in map(ip_interface, texts):
        yield found.ip, found.network


def _joined(networks: Iterable[Network]) -> list[Network]:
    """Networks of one version of IP, as few as say the same."""
    found: list[Network] = list(collapse_addresses(networks))  # type: ignore[type-var]
    return found


def _free_address(pool: Network, taken: Sequence[Network]) -> Address:
    """One of a pool that is in no network of the lab, drawn so that two who enter it are not at the same."""
    while True:
        address = pool[secrets.randbelow(pool.num_addresses)]
        if not any(address in network for network in taken):
            return address


def configuration(
    way: Way, private: X25519PrivateKey, theirs: X25519PublicKey, shared: bytes, endpoint: tuple[str, int]
) -> str:
    """The text of the file.

    Args:
        way: How the lab is entered.
        private: The key of the machine outside.
        theirs: The public key of our side.
        shared: The secret that both have.
        endpoint: Where our side listens.
    """
    host = f"[{endpoint[0]}]" if ":" in endpoint[0] else endpoint[0]
    return f"""[Interface]
PrivateKey = {_text(private.private_bytes_raw())}
Address = {", ".join(str(ip_network(address)) for address in way.addresses)}
MTU = {MTU}

[Peer]
PublicKey = {_text(theirs.public_bytes_raw())}
PresharedKey = {_text(shared)}
AllowedIPs = {", ".join(map(str, way.reached))}
Endpoint = {host}:{endpoint[1]}
"""


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()
