"""What a relay does by itself when nobody else on its machine can."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys

from dilaton.cluster.machine import listening
from dilaton.cluster.relay import KEY_BYTES, What
from tests.conftest import environment

PATIENCE_HOST_S = 60

STOPPED_AGENT = """
import asyncio, os, signal, sys
from dilaton.cluster.relay import Relay, What

async def main():
    fd = os.memfd_create("dilaton-wire")
    relay = await Relay.start(bytes.fromhex(sys.argv[1]), "machine", str(fd), fds=[fd])
    await relay.send(0, What.CONTROL, sys.argv[2].encode())
    os.kill(os.getpid(), signal.SIGSTOP)

asyncio.run(main())
"""


def test_an_agent_that_is_stopped_when_its_run_ends_is_ended_by_its_relay() -> None:
    async def do() -> int:
        key = secrets.token_bytes(KEY_BYTES)
        hub, address = await listening(key, "127.0.0.1:0")
        command = [sys.executable, "-c", STOPPED_AGENT, key.hex(), address]
        with subprocess.Popen(command, env=environment()) as agent:
            try:
                async with asyncio.timeout(PATIENCE_HOST_S):
                    machine, what, _ = await hub.hear()
                    assert (machine, what) == (0, What.JOINED)
                    os.waitid(os.P_PID, agent.pid, os.WSTOPPED | os.WNOWAIT)
                    await hub.close()
                    return await asyncio.to_thread(agent.wait, PATIENCE_HOST_S)
            finally:
                agent.kill()

    assert asyncio.run(do()) == -9
