"""The control socket: who is heard, what is answered, and what is said when there is nobody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dilaton.host.errors import GuestError
from dilaton.run.control.requests import Client, ControlError, Handler, Request, Result, serve


async def echo(request: Request) -> Result:
    return request


async def refuse(request: Request) -> Result:
    raise ControlError(f"not {request['what']}")


async def lose_guest(_: Request) -> Result:
    raise GuestError("guest a has ended")


def shown(lab: str, run_dir: Path, file: Path | None = None) -> Result:
    """What a run shows of itself, as far as it matters here."""
    return {
        "lab": lab,
        "lab_file": str(file) if file else None,
        "run_dir": str(run_dir),
        "state": "boot",
        "clock": None,
    }


HANDLERS: dict[str, Handler] = {"echo": echo, "refuse": refuse, "lose-guest": lose_guest}


@contextmanager
def serving(run_dir: Path, handlers: dict[str, Handler] = HANDLERS) -> Iterator[None]:
    """A run's server in a thread, as the run would have it in another process."""
    up, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve_until_stopped() -> None:
        async with serve(run_dir, handlers):
            up.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve_until_stopped()))
    thread.start()
    while not up.wait(0.1):
        assert thread.is_alive()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
)


def test_what_is_asked_arrives_and_what_is_answered_comes_back(tmp_path: Path) -> None:
    with serving(tmp_path), Client(tmp_path) as client:

        @settings(max_examples=25, deadline=None)
        @given(st.dictionaries(st.text().filter(lambda key: key not in ("verb", "self")), JSON, max_size=4))
        def exchange(arguments: dict[str, object]) -> None:
            assert client.request("echo", **arguments) == arguments

        exchange()


def test_a_refusal_is_an_error_with_its_words_and_the_connection_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path), Client(tmp_path) as client:
        with pytest.raises(ControlError, match=r"^not now$"):
            client.request("refuse", what="now")
        assert client.request("echo", a=1) == {"a": 1}


def test_a_fault_of_a_guest_is_told_to_who_has_met_it(tmp_path: Path) -> None:
    with serving(tmp_path), Client(tmp_path) as client:
        with pytest.raises(ControlError, match=r"^guest a has ended$"):
            client.request("lose-guest")
        assert client.request("echo", a=1) == {"a": 1}


def test_an_unknown_verb_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with (
        serving(tmp_path),
        Client(tmp_path) as client,
        pytest.raises(ControlError, match=r"^dance: .* echo, lose-guest, refuse$"),
    ):
        client.request("dance")


@pytest.mark.parametrize(
    "line", [b"{}\n", b"[1]\n", b"[" * 60_000 + b"\n", b"nonsense\n", b"\xff\n", b"3\n", b'{"verb": []}\n']
)
def test_what_is_no_request_is_an_error(tmp_path: Path, line: bytes) -> None:
    with serving(tmp_path), Client(tmp_path) as client:
        client._line.send(line)
        assert b'"error"' in client._line.receive()


def test_several_clients_are_answered_at_once(tmp_path: Path) -> None:
    with serving(tmp_path), Client(tmp_path) as one, Client(tmp_path) as other:
        assert other.request("echo", a=2) == {"a": 2}
        assert one.request("echo", a=1) == {"a": 1}


def test_the_end_of_the_run_is_told_to_who_waits_for_it(tmp_path: Path) -> None:
    with serving(tmp_path):
        client = Client(tmp_path)
        client.request("echo")
    client.wait_for_end()
    with pytest.raises(ControlError, match="has ended"):
        client.request("echo")
    client.close()
    with pytest.raises(ControlError, match="no run is going on there"):
        Client(tmp_path)


def test_nothing_of_the_socket_is_in_the_file_system(tmp_path: Path) -> None:
    with serving(tmp_path):
        assert list(tmp_path.iterdir()) == []
