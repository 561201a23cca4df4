"""A tunnel from outside: who gets in, what gets out, and what a laptop is told."""

from __future__ import annotations

import hmac
import struct
from collections.abc import Sequence
from hashlib import blake2s
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from dilaton.cli.errors import BadInputError
from dilaton.cli.vpn.enter import default_name, write_configuration
from dilaton.service.vpn.configuration import FORWARDING, POOLS, WayError, configuration, way_into
from dilaton.service.vpn.flows import FLOWS_MAX, Flows
from dilaton.service.vpn.gateway import ListenError, places
from dilaton.service.vpn.wireguard import WINDOW, Peer, new_key

SHARED = bytes(range(32))
LAPTOP, WEB = IPv4Address("100.64.0.9"), IPv4Address("10.0.0.1")
LAPTOP6, WEB6 = IPv6Address("fd12::9"), IPv6Address("fd00::1")


class Laptop:
    """The side that begins, as far as it takes to try the other one; wireguard-go is it in tests/functional."""

    def __init__(self, key: X25519PrivateKey, theirs: X25519PublicKey, shared: bytes = SHARED) -> None:
        self.key, self.theirs, self.shared = key, theirs, shared
        self.sent = 0

    def begins(self, instant: int) -> bytes:
        public = self.theirs.public_bytes_raw()
        self.once = X25519PrivateKey.generate()
        once = self.once.public_key().public_bytes_raw()
        chain = hashed(b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s")
        self.said = hashed(hashed(chain + b"WireGuard v1 zx2c4 Jason@zx2c4.com") + public)
        self.said = hashed(self.said + once)
        (chain,) = derived(chain, once, 1)
        chain, key = derived(chain, self.once.exchange(self.theirs), 2)
        static = self._sealed(key, self.key.public_key().public_bytes_raw())
        self.chain, key = derived(chain, self.key.exchange(self.theirs), 2)
        message = struct.pack("<II32s", 1, 77, once) + static + self._sealed(key, struct.pack(">QI", instant, 0))
        return message + blake2s(message, digest_size=16, key=hashed(b"mac1----" + public)).digest() + bytes(16)

    def ends(self, response: bytes) -> None:
        kind, self.index, own, once, nothing = struct.unpack_from("<III32s16s", response)
        assert (kind, own, len(response)) == (2, 77, 92)
        self.said = hashed(self.said + once)
        theirs = X25519PublicKey.from_public_bytes(once)
        (chain,) = derived(self.chain, once, 1)
        (chain,) = derived(chain, self.once.exchange(theirs), 1)
        (chain,) = derived(chain, self.key.exchange(theirs), 1)
        chain, mixed, key = derived(chain, self.shared, 3)
        self.said = hashed(self.said + mixed)
        assert ChaCha20Poly1305(key).decrypt(bytes(12), nothing, self.said) == b""
        self.sending, self.receiving = (ChaCha20Poly1305(key) for key in derived(chain, b"", 2))

    def sends(self, packet: bytes) -> bytes:
        sealed = self.sending.encrypt(struct.pack("<IQ", 0, self.sent), packet + bytes(-len(packet) % 16), None)
        self.sent += 1
        return struct.pack("<IIQ", 4, self.index, self.sent - 1) + sealed

    def gets(self, datagram: bytes | None) -> bytes:
        assert datagram is not None
        kind, index, counter = struct.unpack_from("<IIQ", datagram)
        assert (kind, index) == (4, 77)
        return self.receiving.decrypt(struct.pack("<IQ", 0, counter), datagram[16:], None)

    def _sealed(self, key: bytes, plain: bytes) -> bytes:
        sealed = ChaCha20Poly1305(key).encrypt(bytes(12), plain, self.said)
        self.said = hashed(self.said + sealed)
        return sealed


def hashed(text: bytes) -> bytes:
    return blake2s(text).digest()


def derived(chain: bytes, mixed: bytes, count: int) -> list[bytes]:
    secret, found = hmac.digest(chain, mixed, "blake2s"), [b""]
    for number in range(count):
        found.append(hmac.digest(secret, found[-1] + bytes([number + 1]), "blake2s"))
    return found[1:]


def pair() -> tuple[Peer, Laptop]:
    own, theirs = new_key(), new_key()
    return Peer(own, theirs.public_key(), SHARED), Laptop(theirs, own.public_key())


def joined() -> tuple[Peer, Laptop]:
    """Both after a handshake, at 0."""
    peer, laptop = pair()
    begun = peer.receive(laptop.begins(1), 0.0)
    assert begun is not None
    laptop.ends(begun.answers[0])
    return peer, laptop


def ip(source: IPv4Address, target: IPv4Address, protocol: int, payload: bytes, fragment: int = 0) -> bytes:
    length = 20 + len(payload)
    header = struct.pack(">BBHHHBBH", 0x45, 0, length, 7, fragment, 64, protocol, 0)
    return header + source.packed + target.packed + payload


def ip6(source: IPv6Address, target: IPv6Address, protocol: int, payload: bytes) -> bytes:
    return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + source.packed + target.packed + payload


def fragment6(protocol: int, offset: int, payload: bytes) -> bytes:
    return struct.pack(">BBHI", protocol, 0, offset << 3 | 1, 7) + payload


def ports(source: int, target: int) -> bytes:
    return struct.pack(">HH", source, target) + bytes(16)


def echo(kind: int, identifier: int) -> bytes:
    return struct.pack(">BBHHH", kind, 0, 0, identifier, 1)


def test_packets_go_both_ways_once_the_laptop_has_shown_that_it_is_there() -> None:
    peer, laptop = joined()
    packet = ip(LAPTOP, WEB, 17, ports(5, 7) + b"odd")
    assert peer.send(packet, 0.0) is None, "nothing is sent before, by which others could have it sent anywhere"
    received = peer.receive(laptop.sends(packet), 1.0)
    assert received is not None
    assert received.packet == packet, "what fills it up to 16 bytes is gone"
    assert laptop.gets(peer.send(packet, 2.0)) == packet + bytes(-len(packet) % 16)
    packet = ip6(LAPTOP6, WEB6, 17, ports(5, 7) + b"odd")
    received = peer.receive(laptop.sends(packet), 3.0)
    assert received is not None and received.packet == packet


def test_nobody_else_gets_an_answer() -> None:
    peer, laptop = pair()
    public = peer.own.public_key()
    stranger = Laptop(new_key(), public)
    assert peer.receive(stranger.begins(1), 0.0) is None, "another person's key"
    assert peer.receive(Laptop(laptop.key, new_key().public_key()).begins(1), 0.0) is None, "meant for another run"
    said = laptop.begins(1)
    for place in (0, 5, 40, 100, 120):
        assert peer.receive(said[:place] + bytes([said[place] ^ 1]) + said[place + 1 :], 0.0) is None
    assert peer.receive(said[:-1], 0.0) is None
    assert peer.receive(b"", 0.0) is None
    assert peer.receive(said, 0.0) is not None
    assert peer.receive(said, 0.0) is None, "heard before"


def test_who_has_the_key_and_not_the_secret_gets_nothing_in() -> None:
    peer, laptop = pair()
    other = Laptop(laptop.key, peer.own.public_key(), bytes(32))
    begun = peer.receive(other.begins(1), 0.0)
    assert begun is not None
    with pytest.raises(InvalidTag):
        other.ends(begun.answers[0])


def test_a_datagram_counts_once_in_whatever_order_they_come() -> None:
    peer, laptop = joined()
    said = [laptop.sends(ip(LAPTOP, WEB, 17, ports(number, 7))) for number in range(WINDOW + 2)]
    for number in (3, 1, 2, 0, 5, WINDOW + 1):
        assert peer.receive(said[number], 0.0) is not None
        assert peer.receive(said[number], 0.0) is None
    assert peer.receive(said[1], 0.0) is None, "too old to be told from one that was there"
    assert peer.receive(said[WINDOW], 0.0) is not None


def test_keys_end_and_the_next_ones_take_their_place() -> None:
    peer, laptop = joined()
    packet = ip(LAPTOP, WEB, 17, ports(5, 7))
    assert peer.receive(laptop.sends(packet), 179.0) is not None
    assert peer.receive(laptop.sends(packet), 180.0) is None
    assert peer.send(packet, 180.0) is None
    begun = peer.receive(laptop.begins(2), 200.0)
    assert begun is not None
    laptop.sent = 0
    laptop.ends(begun.answers[0])
    assert peer.receive(laptop.sends(packet), 201.0) is not None
    assert laptop.gets(peer.send(packet, 201.0)).startswith(packet)


def test_who_only_sends_is_answered_in_ten_seconds() -> None:
    peer, laptop = joined()
    peer.receive(laptop.sends(b""), 0.0)
    assert peer.keep_alive(60.0) is None, "an answer to an answer would go on for ever"
    peer.receive(laptop.sends(ip(LAPTOP, WEB, 17, ports(5, 7))), 60.0)
    assert peer.keep_alive(69.9) is None
    assert laptop.gets(peer.keep_alive(70.0)) == b""
    assert peer.keep_alive(90.0) is None


def test_only_answers_leave_the_lab() -> None:
    flows = Flows([LAPTOP, LAPTOP6])
    syn, answer = ip(LAPTOP, WEB, 6, ports(5000, 80)), ip(WEB, LAPTOP, 6, ports(80, 5000))
    assert not flows.answers(answer)
    assert flows.takes(syn)
    assert flows.answers(answer)
    for other in (
        ip(WEB, LAPTOP, 6, ports(80, 22)),
        ip(WEB, LAPTOP, 6, ports(81, 5000)),
        ip(WEB, LAPTOP, 17, ports(80, 5000)),
        ip(IPv4Address("10.0.0.2"), LAPTOP, 6, ports(80, 5000)),
        ip(WEB, IPv4Address("192.168.0.1"), 6, ports(80, 5000)),
        answer[:-1],
        answer[:21],
        b"",
        b"\x60" + bytes(39),
    ):
        assert not flows.answers(other), other


def test_pings_and_errors_are_answers_too() -> None:
    flows = Flows([LAPTOP, LAPTOP6])
    asked = ip(LAPTOP, WEB, 1, echo(8, 33))
    assert not flows.answers(ip(WEB, LAPTOP, 1, echo(0, 33)))
    assert flows.takes(asked)
    assert flows.answers(ip(WEB, LAPTOP, 1, echo(0, 33)))
    assert not flows.answers(ip(WEB, LAPTOP, 1, echo(0, 34)))
    assert not flows.answers(ip(WEB, LAPTOP, 1, echo(8, 33))), "the lab pings nobody"
    router = IPv4Address("10.0.0.254")
    assert flows.answers(ip(router, LAPTOP, 1, echo(11, 0) + asked[:28]))
    assert not flows.answers(ip(router, LAPTOP, 1, echo(11, 0) + ip(LAPTOP, WEB, 17, ports(1, 2))[:28]))
    assert not flows.answers(ip(router, LAPTOP, 1, echo(11, 0)))


def test_pieces_of_a_packet_are_where_its_first_one_may_be() -> None:
    flows = Flows([LAPTOP, LAPTOP6])
    piece = ip(WEB, LAPTOP, 17, bytes(64), fragment=100)
    assert not flows.answers(piece)
    assert flows.takes(ip(LAPTOP, WEB, 17, ports(5000, 53)))
    assert flows.answers(piece)


def test_of_ipv6_only_answers_leave_the_lab_too() -> None:
    flows = Flows([LAPTOP, LAPTOP6])
    answer, asked = ip6(WEB6, LAPTOP6, 6, ports(80, 5000)), ip6(LAPTOP6, WEB6, 6, ports(5000, 80))
    assert not flows.answers(answer)
    assert flows.takes(asked) and flows.answers(answer)
    router = IPv6Address("fd00::2")
    too_big = echo(2, 0) + asked
    assert flows.answers(ip6(router, LAPTOP6, 58, too_big)), "by which paths with a smaller MTU are found"
    for other in (
        ip6(WEB6, LAPTOP6, 6, ports(80, 22)),
        ip6(router, LAPTOP6, 6, ports(80, 5000)),
        ip6(WEB6, IPv6Address("fd12::8"), 6, ports(80, 5000)),
        ip6(WEB6, LAPTOP6, 58, echo(135, 0) + LAPTOP6.packed),
        ip6(router, LAPTOP6, 58, echo(2, 0) + ip6(LAPTOP6, WEB6, 6, ports(1, 2))),
        ip6(WEB6, LAPTOP6, 0, bytes([6, 0]) + bytes(6) + ports(80, 5000)),
        answer[:-1],
        answer[:30],
    ):
        assert not flows.answers(other), other
    assert flows.takes(ip6(LAPTOP6, WEB6, 58, echo(128, 33)))
    assert flows.answers(ip6(WEB6, LAPTOP6, 58, echo(129, 33)))
    assert not flows.answers(ip6(WEB6, LAPTOP6, 58, echo(128, 33))), "the lab pings nobody"
    assert flows.takes(ip6(LAPTOP6, WEB6, 44, fragment6(17, 0, ports(5000, 53))))
    assert flows.answers(ip6(WEB6, LAPTOP6, 44, fragment6(17, 0, ports(53, 5000))))
    assert flows.answers(ip6(WEB6, LAPTOP6, 44, fragment6(17, 8, bytes(64))))
    assert not flows.answers(ip6(router, LAPTOP6, 44, fragment6(17, 8, bytes(64))))


def test_no_laptop_speaks_for_another() -> None:
    flows = Flows([LAPTOP, LAPTOP6])
    assert not flows.takes(ip(WEB, LAPTOP, 6, ports(1, 2)))
    assert not flows.takes(ip6(WEB6, LAPTOP6, 6, ports(1, 2)))
    assert not flows.takes(b"\x60" + bytes(39))


def test_what_is_remembered_is_bounded() -> None:
    flows = Flows([LAPTOP, LAPTOP6])
    for number in range(FLOWS_MAX + 1):
        assert flows.takes(ip(LAPTOP, WEB, 17, ports(number, 53)))
    assert not flows.answers(ip(WEB, LAPTOP, 17, ports(53, 0)))
    assert flows.answers(ip(WEB, LAPTOP, 17, ports(53, 1)))


def node(name: str, addresses: Sequence[str], *, forwards: bool = False) -> dict[str, Any]:
    sysctls = {"net/ipv4/ip_forward": "1"} if forwards else {}
    return {"name": name, "loopback": [], "interfaces": [{"addresses": addresses}], "sysctls": sysctls}


LAB = [
    node("web", ["10.0.0.1/31", "fd00::1/64"]),
    node("gate", ["10.0.0.0/31", "10.0.0.2/31"], forwards=True),
    node("desk", ["10.0.0.3/31", "100.64.0.0/11"]),
    node("sw", []),
]


def test_a_node_that_forwards_leads_to_the_lab_and_another_to_itself() -> None:
    through = way_into(LAB, None)
    assert (through.node, list(map(str, through.reached))) == ("gate", ["10.0.0.0/30", "100.64.0.0/11"])
    (address,) = through.addresses
    assert address in POOLS[4] and int(address) & 1 << 21, "not in the half that the lab has"
    alone = way_into(LAB, "web")
    assert list(map(str, alone.reached)) == ["10.0.0.1/32", "fd00::1/128"]
    assert [address.version for address in alone.addresses] == [4, 6]
    assert way_into(LAB[3:] + LAB[:1], None).node == "web"


def test_of_a_lab_of_ipv6_the_way_is_one_of_ipv6() -> None:
    lab = [node("a", ["fd00::/127"]), node("r", ["fd00::1/127", "fd00:1::1/64"]) | {"sysctls": {FORWARDING[6]: "1"}}]
    way = way_into(lab, None)
    assert (way.node, list(map(str, way.reached))) == ("r", ["fd00::/127", "fd00:1::/64"])
    (address,) = way.addresses
    assert address in POOLS[6]
    key = new_key()
    text = configuration(way, key, key.public_key(), SHARED, ("::1", 51820))
    assert f"Address = {address}/128\n" in text and "Endpoint = [::1]:51820\n" in text


def test_a_place_to_listen_is_an_address_with_a_port_or_some() -> None:
    assert places("127.0.0.1") == [("127.0.0.1", 0)]
    assert places("[::]:51820") == [("::", 51820)]
    assert places("0.0.0.0:51820-51822") == [("0.0.0.0", port) for port in (51820, 51821, 51822)]
    for wrong in (
        "",
        ":1",
        "::1",
        "a:b",
        "a:1-",
        "a:2-1",
        "a:0-3",
        "a:65536",
        "a:65535-65536",
        "a:\u0661",
        "[::1",
        "a:1-2-3",
    ):
        with pytest.raises(ListenError, match=r"not ADDRESS\[:PORT\[-PORT\]\]"):
            places(wrong)


def test_a_way_that_is_none_is_refused() -> None:
    with pytest.raises(WayError, match="no such node; there are desk, gate, sw, web"):
        way_into(LAB, "x")
    with pytest.raises(WayError, match="sw: has no address; there are desk, gate, web"):
        way_into(LAB, "sw")
    with pytest.raises(WayError, match="nothing to reach"):
        way_into(LAB[3:], None)


def test_the_configuration_is_for_nobody_else_and_never_in_place_of_another(tmp_path: Path) -> None:
    key = new_key()
    text = configuration(way_into(LAB, "web"), key, key.public_key(), SHARED, ("127.0.0.1", 51820))
    assert "AllowedIPs = 10.0.0.1/32, fd00::1/128\nEndpoint = 127.0.0.1:51820\n" in text
    write_configuration(path := tmp_path / default_name("runs/web-20260101T000000-1"), text)
    assert path.name == "web-20260101T00.conf" and path.stat().st_mode & 0o777 == 0o600
    for wrong in (path, tmp_path / "x.txt", tmp_path / "a-name-that-is-long.conf", tmp_path / "no" / "a.conf"):
        with pytest.raises(BadInputError):
            write_configuration(wrong, text)
