"""Sessions in guests of other machines: frames between a run and the line of a guest, by way of its host agent.

A run opens sessions as it does in guests of this machine, and its frames go to the agent over the run's connection, in
the order in which they are sent. The agent opens a session of its own for each on the line of its guest, passes on what
comes of it, and says where the guest was lost to it. Windows and grants are between the program and whoever works with
it (`host/sessions/streams.py`), so no more is under way than these allow, and nothing is kept here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from dilaton.cluster.relay import Saying
from dilaton.host.sessions.frames import HEADER, Kind
from dilaton.host.sessions.session import Send
from dilaton.host.sessions.streams import Sessions

Say = Callable[[Saying], None]
"""Says something to the other side of the run, after all that was said before."""


def _saying(guest: int, session: int, frame: tuple[Kind, int, bytes] | None) -> Saying:
    """What passes a frame on; None for the end of what can come of a session."""
    if frame is None:
        return {"line": guest, "lost": session}
    kind, stream, payload = frame
    packed = HEADER.pack(session, kind, stream, 0, len(payload)) + payload
    return {"line": guest, "frame": base64.b64encode(packed).decode()}


def _frame(saying: Saying) -> tuple[int, Kind, int, bytes]:
    """Session, kind, stream and payload of a frame that was passed on.

    Raises:
        ValueError: It is none.
    """
    packed = base64.b64decode(saying["frame"], validate=True)
    if len(packed) < HEADER.size:
        raise ValueError(f"{len(packed)} bytes: less than a frame has")
    session, kind, stream, _, length = HEADER.unpack_from(packed)
    if length != len(packed) - HEADER.size:
        raise ValueError(f"{length} bytes: not those of the frame")
    return session, Kind(kind), stream, packed[HEADER.size :]


class FarSessions(Sessions):
    """The sessions of a guest that is on another machine, for the run."""

    def __init__(self, guest: int, say: Say) -> None:
        """Takes the place of the guest on its machine, and the way to the agent there."""
        super().__init__()
        self._guest, self._say = guest, say

    def _send(self, session: int, kind: Kind, stream: int = 0, payload: bytes = b"") -> None:
        self._say(_saying(self._guest, session, (kind, stream, payload)))

    def take(self, saying: Saying) -> None:
        """Takes in what the agent says of a session.

        Raises:
            ValueError: It is nothing that one says.
        """
        if "lost" in saying:
            self._lose(int(saying["lost"]))
        else:
            self._receive(*_frame(saying))

    def close(self) -> None:
        """Nothing more comes."""
        self._lose_all()


class Passing:
    """The sessions of a run in a guest of this machine, for its host agent."""

    def __init__(self, guest: int, streams: Sessions, say: Say) -> None:
        """Takes the place of the guest here, the line of it, and the way to the run."""
        self._guest, self._streams, self._say = guest, streams, say
        self._ways: dict[int, Send] = {}
        """To the program of each session that the run has opened and that is not over, by the run's number."""

    def take(self, saying: Saying) -> None:
        """Takes in what the run says of a session.

        Raises:
            ValueError: It is nothing that one says.
        """
        session, kind, stream, payload = _frame(saying)
        if kind is Kind.OPEN:
            self._streams.begin_for(lambda send: self._begun(session, send), payload)
        elif session in self._ways:
            # What was said of a session that has ended meanwhile is for nobody.
            self._ways[session](kind, stream, payload)

    def _begun(self, session: int, send: Send) -> _Passed:
        self._ways[session] = send
        return _Passed(self, session)

    def pass_on(self, session: int, frame: tuple[Kind, int, bytes] | None) -> None:
        """Tells the run what comes of a session; None: nothing more."""
        if frame is None or frame[0] in (Kind.EXITED, Kind.FAILED):
            del self._ways[session]
        self._say(_saying(self._guest, session, frame))


class _Passed:
    """Takes the frames of a session for a run elsewhere."""

    def __init__(self, passing: Passing, session: int) -> None:
        self._passing, self._session = passing, session

    def receive(self, kind: Kind, stream: int, payload: bytes) -> None:
        """See `Receiver`."""
        self._passing.pass_on(self._session, (kind, stream, payload))

    def lose(self) -> None:
        """See `Receiver`."""
        self._passing.pass_on(self._session, None)
