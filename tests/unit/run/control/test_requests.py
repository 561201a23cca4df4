"""The control socket: who is heard, what is answered, and what is said when there is nobody."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import select
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dilaton.host.errors import GuestError
from dilaton.run.control import sockets
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client, Handler, Request, Result, serve
from tests.conftest import PATIENCE_HOST_S


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
        "suspended": False,
        "clock": None,
    }


HANDLERS: dict[str, Handler] = {"echo": echo, "refuse": refuse, "lose-guest": lose_guest}


@contextmanager
def serving(run_dir: Path, handlers: dict[str, Handler] = HANDLERS) -> Iterator[None]:
    """A run's server in a thread, as the run would have it in another process."""
    up, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve_until_stopped() -> None:
        loops.append(asyncio.get_running_loop())
        async with serve(run_dir, handlers):
            up.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve_until_stopped()))
    thread.start()
    while not up.wait(0.1):
        assert thread.is_alive()
    try:
        yield
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join()


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


def test_who_asks_for_too_much_is_told_so(tmp_path: Path) -> None:
    with serving(tmp_path), Client(tmp_path) as client:
        client._line.send(b'{"verb": "echo", "what": "' + b"x" * 70_000 + b'"}\n')
        assert b"a request is a line of at most 65536 bytes" in client._line.receive()


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


@pytest.mark.parametrize("turns", range(6))
def test_who_comes_as_the_run_ends_leaves_nothing_open(turns: int, tmp_path: Path) -> None:
    """A connection may be anywhere between asked for and answered, one turn of the loop after the other."""

    async def scenario() -> bytes:
        async with serve(tmp_path, HANDLERS):
            client = sockets.connect(tmp_path).connection
            client.setblocking(False)
            for _ in range(turns):
                await asyncio.sleep(0)
        with client, contextlib.suppress(ConnectionResetError):
            return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), PATIENCE_HOST_S)
        return b""

    with warnings.catch_warnings(record=True) as unclosed:
        warnings.simplefilter("always", ResourceWarning)
        assert asyncio.run(scenario()) == b"", "closed, not forgotten"
        gc.collect()
    assert [str(warning.message) for warning in unclosed] == []


def test_who_never_reads_delays_the_end_of_a_run_by_little(tmp_path: Path) -> None:
    async def say_much(_: Request) -> Result:
        return {"much": "x" * (1 << 22)}

    async def scenario() -> None:
        async with serve(tmp_path, {"much": say_much}):
            client = sockets.connect(tmp_path).connection
            client.send(b'{"verb": "much"}\n')
            await asyncio.to_thread(select.select, [client], [], [])
        client.close()

    with warnings.catch_warnings(record=True) as unclosed:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(asyncio.wait_for(scenario(), PATIENCE_HOST_S))
        gc.collect()
    assert [str(warning.message) for warning in unclosed] == []
