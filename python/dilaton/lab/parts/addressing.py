"""Where addresses come from: named pools, as users write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_interface, ip_network
from typing import Annotated, Any

from pydantic import BeforeValidator, InstanceOf, model_validator

from dilaton.lab.text import units
from dilaton.lab.text.part import Part

IPV6_LENGTH_MAX = 62
"""A pool of IPv6 has at least four /64: one for point-to-point links, one for loopbacks, the others for segments."""


def parse_ipv4_pool(value: object) -> IPv4Network:
    """Reads an IPv4 prefix, as `10.0.0.0/16`."""
    network = _network(value, "10.0.0.0/16")
    if not isinstance(network, IPv4Network):
        raise ValueError(f"{network}: this pool has IPv4 addresses; IPv6 addresses come from the pool ipv6")
    if network.prefixlen == 0:
        raise ValueError(f"{network}: a pool cannot be the whole Internet; write for example 10.0.0.0/16")
    return network


def parse_ipv6_pool(value: object) -> IPv6Network:
    """Reads an IPv6 prefix, as `fd00::/48`."""
    network = _network(value, "fd00::/48")
    if not isinstance(network, IPv6Network):
        raise ValueError(f"{network}: must be an IPv6 prefix, such as fd00::/48")
    if not 0 < network.prefixlen <= IPV6_LENGTH_MAX:
        raise ValueError(f"{network}: the prefix length of this pool must be from 1 to {IPV6_LENGTH_MAX}, such as 48")
    return network


def parse_address(value: object) -> IPv4Interface | IPv6Interface:
    """Reads an interface's address with its prefix length, as `192.0.2.1/24`."""
    if isinstance(value, IPv4Interface | IPv6Interface):
        return value
    text = units.shown(value)
    if "/" not in text:
        raise ValueError(f"{text}: an address needs its prefix length, such as 192.0.2.1/24")
    try:
        found = ip_interface(text)
    except ValueError as error:
        raise ValueError(f"{text}: not an IP address with prefix length, such as 192.0.2.1/24") from error
    network = found.network
    if found.version == 4 and network.prefixlen < 31 and found.ip in (network[0], network[-1]):
        which = "network" if found.ip == network[0] else "broadcast"
        raise ValueError(f"{text}: is the {which} address of {network}; give the interface another")
    return found


def parse_addresses(value: object) -> object:
    """Reads one address, or a list of them."""
    return [value] if isinstance(value, str) else value


def _network(value: object, example: str) -> IPv4Network | IPv6Network:
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    text = units.shown(value)
    try:
        return ip_network(text)
    except ValueError as error:
        if re.search(r"host bits", str(error)):
            right = ip_network(text, strict=False)
            raise ValueError(f"{text}: is an address, not a prefix; write {right}") from error
        raise ValueError(f"{text}: not a prefix; write for example {example}") from error


def _length(minimum: int, maximum: int) -> Callable[[object], int]:
    return lambda value: units.parse_count(value, "the prefix length of a link", minimum, maximum)


class _Pool(Part):
    ipv4: Annotated[InstanceOf[IPv4Network], BeforeValidator(parse_ipv4_pool)]

    @model_validator(mode="before")
    @classmethod
    def _from_prefix(cls, data: Any) -> Any:
        return data if isinstance(data, dict) else {"ipv4": data}


class PointToPointPool(_Pool):
    """Where the links between two interfaces have their addresses from, and how many addresses each of them takes."""

    prefix: Annotated[int, BeforeValidator(_length(30, 31))] = 31


class SegmentPool(_Pool):
    """Where segments (switched networks) have theirs from; a segment with more interfaces than fit takes more."""

    prefix: Annotated[int, BeforeValidator(_length(8, 30))] = 24


class Addressing(Part):
    """The pools; addresses of a lab are taken from them in order."""

    p2p: PointToPointPool = PointToPointPool.model_construct(ipv4=IPv4Network("10.0.0.0/8"))
    lan: SegmentPool = SegmentPool.model_construct(ipv4=IPv4Network("172.16.0.0/12"))
    loopback: Annotated[InstanceOf[IPv4Network], BeforeValidator(parse_ipv4_pool)] | None = None
    """None: routers have a loopback address only where a routing daemon needs one, from `LOOPBACKS`."""
    ipv6: Annotated[InstanceOf[IPv6Network], BeforeValidator(parse_ipv6_pool)] | None = None
    """None: no IPv6 addresses."""


LOOPBACKS = IPv4Network("192.168.0.0/16")
