"""Sessions in guests of other machines: frames go to the line of the guest and come back, and what is lost is told."""

from __future__ import annotations

import struct

import pytest

from dilaton.cluster.relay import Saying
from dilaton.cluster.sessions import FarSessions, Passing
from dilaton.host.sessions.frames import Kind
from dilaton.host.sessions.session import Send
from dilaton.host.sessions.streams import Sessions

Frame = tuple[Kind, int, bytes]


class Line(Sessions):
    """The line of a guest that keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[int, Frame]] = []

    def _send(self, session: int, kind: Kind, stream: int = 0, payload: bytes = b"") -> None:
        self.sent.append((session, (kind, stream, payload)))

    def say(self, session: int, *frame: object) -> None:
        self._receive(session, *frame)  # type: ignore[arg-type]

    def end(self) -> None:
        self._lose_all()


class Taker:
    """Keeps what comes of a session."""

    def __init__(self, send: Send) -> None:
        self.send, self.came, self.lost = send, list[Frame](), 0

    def receive(self, kind: Kind, stream: int, payload: bytes) -> None:
        self.came.append((kind, stream, payload))

    def lose(self) -> None:
        self.lost += 1


def connected() -> tuple[FarSessions, Line, list[Saying]]:
    """A run's sessions in a guest, the line of the guest, and what its agent has told the run."""
    line, told = Line(), list[Saying]()

    def tell(saying: Saying) -> None:
        told.append(saying)
        run.take(saying)

    passing = Passing(3, line, tell)
    run = FarSessions(3, passing.take)
    return run, line, told


def test_what_two_sessions_say_goes_to_each_alone() -> None:
    run, line, _ = connected()
    # One is over before, so that the numbers of the run are not those of the line.
    line.expect(Taker)
    takers = [run.begin_for(Taker, request) for request in (b"first", b"second")]
    takers[1].send(Kind.DATA, 0, bytes(range(256)))
    assert line.sent == [
        (2, (Kind.OPEN, 0, b"first")),
        (3, (Kind.OPEN, 0, b"second")),
        (3, (Kind.DATA, 0, bytes(range(256)))),
    ]
    ended = (Kind.EXITED, 0, struct.pack("<II", 0, 0))
    line.say(3, Kind.DATA, 1, b"out")
    line.say(2, *ended)
    assert [taker.came for taker in takers] == [[ended], [(Kind.DATA, 1, b"out")]]


def test_of_a_session_that_is_over_nothing_goes_either_way() -> None:
    run, line, told = connected()
    taker = run.begin_for(Taker, b"")
    line.say(1, Kind.FAILED, 0, struct.pack("<I", 127))
    sent, said = len(line.sent), len(told)
    taker.send(Kind.GRANT, 1, struct.pack("<I", 9))
    line.say(1, Kind.DATA, 1, b"late")
    line.end()
    run.close()
    assert (len(line.sent), len(told), taker.lost) == (sent, said, 0)


def test_a_guest_that_boots_another_kernel_loses_its_sessions_and_has_new_ones() -> None:
    run, line, _ = connected()
    taker = run.begin_for(Taker, b"")
    line.end()
    assert taker.lost == 1
    again = run.begin_for(Taker, b"again")
    line.say(2, Kind.DATA, 1, b"out")
    assert again.came == [(Kind.DATA, 1, b"out")]


def test_with_its_machine_a_session_is_lost() -> None:
    run, _, _ = connected()
    taker = run.begin_for(Taker, b"")
    run.close()
    assert taker.lost == 1


@pytest.mark.parametrize("frame", ["", "AAAA", "AQAAAAIBAAAJAAAA", "AQAAAGMBAAAAAAAA", "no base64"])
def test_what_is_no_frame_is_refused(frame: str) -> None:
    run, _, _ = connected()
    with pytest.raises(ValueError, match=r"frame|base64|padding|not a valid Kind"):
        run.take({"line": 3, "frame": frame})
