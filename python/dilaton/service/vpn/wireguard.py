"""The answering side of a WireGuard tunnel with one peer: datagrams in, packets out, and back.

The problem. A machine outside has to get into a lab without anybody being root, and with what it has already. Every
system has a WireGuard of its own, which gives its owner an interface; so it is enough to answer one. The guest's
kernel could, but Debian's has none, keys would be in memory that the lab's programs share, and a tunnel's timers
would run in virtual time: a held clock would end it, and of a TDF of 300 the answering side would take what comes
every five host seconds for a flood. Here they run in host time on both sides, and of the lab only the packets inside
wait for the clock.

The protocol is that of Donenfeld, "WireGuard: Next Generation Kernel Network Tunnel" (NDSS 2017), whose sections are
cited. The cryptography is that of the package of that name, and hashlib's BLAKE2s. This side never begins a
handshake: the lab begins nothing with who is outside (`flows.py`), and a machine outside that is not there needs no
tunnel. Replies to floods (section 5.3) are left out: a datagram that does not know this side's public key, which only
the peer has, costs one hash.

Nothing here reads a clock: `now_s` is the host's, of any origin.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from dataclasses import dataclass, field
from hashlib import blake2s

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

CONSTRUCTION = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
IDENTIFIER = b"WireGuard v1 zx2c4 Jason@zx2c4.com"
LABEL_MAC1 = b"mac1----"

INITIATION = struct.Struct("<II32s48s28s16s16s")
"""Type, sender, ephemeral key, static key, timestamp, and two authenticators (section 5.4.2)."""
RESPONSE = struct.Struct("<III32s16s")
"""Type, sender, receiver, ephemeral key, nothing encrypted (section 5.4.3); two authenticators follow."""
TRANSPORT = struct.Struct("<IIQ")
"""Type, receiver, counter; an encrypted packet follows (section 5.4.6)."""
INITIATION_TYPE, RESPONSE_TYPE, TRANSPORT_TYPE = 1, 2, 4
MAC_BYTES = 16
PADDING_BYTES = 16

REJECT_AFTER_S = 180.0
"""How old keys may be, for either direction (section 6.1)."""
REJECT_AFTER_MESSAGES = (1 << 64) - (1 << 13) - 1
KEEPALIVE_S = 10.0
"""Who has got something answers within that, with nothing if need be (section 6.5)."""
WINDOW = 8128
"""How far behind the latest counter a datagram may come (section 5.4.6)."""
KEYS_MAX = 3
"""Of the peer's latest handshakes: those that it may still use."""


def new_key() -> X25519PrivateKey:
    """A private key that nobody else has."""
    return X25519PrivateKey.generate()


IPV6_BYTES = 40
"""Of the header, which IPv6 does not count in its length."""


@dataclass
class _Keys:
    """What came of a handshake."""

    theirs: int
    receiving: ChaCha20Poly1305
    sending: ChaCha20Poly1305
    since_s: float
    sent: int = 0
    latest: int = -1
    seen: int = 0
    """Bit n: the counter `latest` - n was there."""

    def is_new(self, counter: int) -> bool:
        """Whether no datagram of this counter has come; to be asked of authentic ones alone, and once."""
        ahead = counter - self.latest
        if ahead > 0:
            self.seen = ((self.seen << min(ahead, WINDOW)) | 1) & ((1 << WINDOW) - 1)
            self.latest = counter
            return True
        if -ahead >= WINDOW or self.seen >> -ahead & 1:
            return False
        self.seen |= 1 << -ahead
        return True


@dataclass(frozen=True)
class Received:
    """What a datagram was.

    Attributes:
        packet: What is to go on; empty: nothing, as of a handshake.
        answers: Datagrams for where it came from.
    """

    packet: bytes = b""
    answers: tuple[bytes, ...] = ()


@dataclass
class Peer:
    """The tunnel, from this side.

    Attributes:
        own: Our private key.
        theirs: The public key of who may get in; what anybody else sends is passed over in silence (section 5.1).
        shared: A secret of 32 bytes that both have, too.
    """

    own: X25519PrivateKey
    theirs: X25519PublicKey
    shared: bytes
    _latest_timestamp: bytes = b""
    _keys: dict[int, _Keys] = field(default_factory=dict)
    """By our index, the oldest first."""
    _current: _Keys | None = None
    """Those that the peer was the last to show that it has, which are the ones to send with."""
    _answer_by_s: float | None = None

    def receive(self, datagram: bytes, now_s: float) -> Received | None:
        """What a datagram says; None: it is not the peer's, or was there before."""
        match datagram[:4]:
            case b"\1\0\0\0" if len(datagram) == INITIATION.size:
                answer = self._answer(datagram, now_s)
                return Received(answers=(answer,)) if answer else None
            case b"\4\0\0\0" if len(datagram) >= TRANSPORT.size + MAC_BYTES:
                return self._open(datagram, now_s)
        return None

    def send(self, packet: bytes, now_s: float) -> bytes | None:
        """The datagram that carries a packet; None: the peer has not come, or was silent for too long."""
        keys = self._current
        if keys is None or now_s - keys.since_s >= REJECT_AFTER_S or keys.sent >= REJECT_AFTER_MESSAGES:
            return None
        header = TRANSPORT.pack(TRANSPORT_TYPE, keys.theirs, keys.sent)
        padded = packet + bytes(-len(packet) % PADDING_BYTES)
        sealed = keys.sending.encrypt(_nonce(keys.sent), padded, None)
        keys.sent += 1
        self._answer_by_s = None
        return header + sealed

    def keep_alive(self, now_s: float) -> bytes | None:
        """A datagram with nothing in it, where the peer waits for one by now."""
        if self._answer_by_s is None or now_s < self._answer_by_s:
            return None
        return self.send(b"", now_s)

    def _open(self, datagram: bytes, now_s: float) -> Received | None:
        _, index, counter = TRANSPORT.unpack_from(datagram)
        keys = self._keys.get(index)
        if keys is None or now_s - keys.since_s >= REJECT_AFTER_S or counter >= REJECT_AFTER_MESSAGES:
            return None
        try:
            packet = keys.receiving.decrypt(_nonce(counter), datagram[TRANSPORT.size :], None)
        except InvalidTag:
            return None
        if not keys.is_new(counter):
            return None
        self._current = keys
        packet = _without_padding(packet)
        if packet and self._answer_by_s is None:
            self._answer_by_s = now_s + KEEPALIVE_S
        return Received(packet)

    def _answer(self, datagram: bytes, now_s: float) -> bytes | None:
        """The second message of a handshake whose first this is (sections 5.4.2 to 5.4.5)."""
        _, sender, ephemeral, static, timestamp, mac1, _ = INITIATION.unpack(datagram)
        own_public = self.own.public_key().public_bytes_raw()
        if not hmac.compare_digest(_mac1(own_public, datagram[: -2 * MAC_BYTES]), mac1):
            return None
        chain = blake2s(CONSTRUCTION).digest()
        said = _Transcript(blake2s(blake2s(chain + IDENTIFIER).digest() + own_public).digest())
        said.add(ephemeral)
        (chain,) = _derived(chain, ephemeral, 1)
        theirs = self.theirs.public_bytes_raw()
        try:
            their_ephemeral = X25519PublicKey.from_public_bytes(ephemeral)
            chain, key = _derived(chain, self.own.exchange(their_ephemeral), 2)
            if said.opened(key, static) != theirs:
                return None
            chain, key = _derived(chain, self.own.exchange(self.theirs), 2)
            instant = said.opened(key, timestamp)
        except (InvalidTag, ValueError):
            return None
        if instant <= self._latest_timestamp:
            return None
        self._latest_timestamp = instant

        index = secrets.randbits(32)
        once = X25519PrivateKey.generate()
        once_public = once.public_key().public_bytes_raw()
        said.add(once_public)
        (chain,) = _derived(chain, once_public, 1)
        (chain,) = _derived(chain, once.exchange(their_ephemeral), 1)
        (chain,) = _derived(chain, once.exchange(self.theirs), 1)
        chain, mixed, key = _derived(chain, self.shared, 3)
        said.add(mixed)
        response = RESPONSE.pack(RESPONSE_TYPE, index, sender, once_public, said.sealed(key, b""))
        receiving, sending = _derived(chain, b"", 2)
        while len(self._keys) >= KEYS_MAX:
            del self._keys[next(iter(self._keys))]
        self._keys[index] = _Keys(sender, ChaCha20Poly1305(receiving), ChaCha20Poly1305(sending), now_s)
        return response + _mac1(theirs, response) + bytes(MAC_BYTES)


@dataclass
class _Transcript:
    """All that was said in a handshake so far, as a hash that each encrypted part is bound to."""

    digest: bytes

    def add(self, what: bytes) -> None:
        self.digest = blake2s(self.digest + what).digest()

    def opened(self, key: bytes, sealed: bytes) -> bytes:
        plain = ChaCha20Poly1305(key).decrypt(_nonce(0), sealed, self.digest)
        self.add(sealed)
        return plain

    def sealed(self, key: bytes, plain: bytes) -> bytes:
        sealed = ChaCha20Poly1305(key).encrypt(_nonce(0), plain, self.digest)
        self.add(sealed)
        return sealed


def _derived(chain: bytes, mixed: bytes, count: int) -> tuple[bytes, ...]:
    """KDFn of section 5.4: HKDF (RFC 5869) with BLAKE2s."""
    secret = _hmac(chain, mixed)
    found: list[bytes] = []
    for number in range(1, count + 1):
        found.append(_hmac(secret, (found[-1] if found else b"") + bytes([number])))
    return tuple(found)


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "blake2s")


def _mac1(public: bytes, message: bytes) -> bytes:
    """Shows that who sends a message knows whom it sends it to (section 5.4.4)."""
    return blake2s(message, digest_size=MAC_BYTES, key=blake2s(LABEL_MAC1 + public).digest()).digest()


def _without_padding(packet: bytes) -> bytes:
    """As long as its header says, since what is carried is a multiple of 16 bytes long (section 5.4.6)."""
    version = packet[0] >> 4 if len(packet) >= 6 else 0
    if version == 4:
        return packet[: struct.unpack_from(">H", packet, 2)[0]]
    if version == 6:
        return packet[: IPV6_BYTES + struct.unpack_from(">H", packet, 4)[0]]
    return packet


def _nonce(counter: int) -> bytes:
    return struct.pack("<IQ", 0, counter)
