"""The process that speaks with Ray for a run: reserves the machines, has an actor start the host agent on each, and
carries the lines of the agents' standard streams.

Ray takes hundreds of megabytes, threads and signals of whoever imports it, so no run does. The engine (`ray.py`) starts
this process, tells it a `Wanted`, and speaks with it in lines of JSON. It is the driver of a Ray job: when it ends,
however that is, Ray ends the actors, agents see the end of their standard input, and the reservation is given back.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from dilaton.cluster.engines.processes import END_HOST_S_MAX, last_line


class Agent:
    """An actor: a host agent of its machine, whose standard streams it passes on in lines."""

    def __init__(self) -> None:
        """Starts it."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the agent is there
        self._agent = subprocess.Popen(
            [sys.executable, "-m", "dilaton.cluster.host_agent", "--say"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )

    def node(self) -> str:
        """By which Ray knows the machine that it is on."""
        return str(ray.get_runtime_context().get_node_id())

    def say(self, line: str) -> None:
        """Tells the agent a line."""
        assert self._agent.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._agent.stdin.write(line.encode() + b"\n")
            self._agent.stdin.flush()

    def hear(self) -> str | None:
        """The next line that the agent says; None when it has ended."""
        assert self._agent.stdout is not None
        line = self._agent.stdout.readline()
        return line.decode(errors="replace") if line else None

    def finish(self) -> None:
        """Has the agent end, and waits for that: of an actor that is gone Ray kills what it has started."""
        assert self._agent.stdin is not None
        self._agent.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._agent.wait(END_HOST_S_MAX)

    def ended(self) -> tuple[int, str]:
        """The status with which the agent has ended, and what it complained of last."""
        return self._agent.wait(), last_line(self._errors)


class Teller:
    """Says things to the engine, from whatever thread."""

    def __init__(self) -> None:
        """The standard output is kept for it: what else is printed here goes to the errors."""
        self._lock, self._out = threading.Lock(), os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def __call__(self, **said: Any) -> None:
        """Says something."""
        with self._lock:
            print(json.dumps(said), file=self._out, flush=True)


def reserve(machines: int, cores: float, memory_bytes: int) -> Any:
    """A group of so many machines, as soon as all of them have so much for it.

    Raises:
        ValueError: That can never be.
    """
    there = [node for node in ray.nodes() if node["Alive"]]
    large = [
        node
        for node in there
        if node["Resources"].get("CPU", 0) >= cores and node["Resources"].get("memory", 0) >= memory_bytes
    ]
    if len(large) < machines:
        what = f"{cores:g} cores and {memory_bytes / 1e9:.3g} GB for a run"
        raise ValueError(
            f"the cluster has {len(there)} machines, {len(large)} of them with {what}; {machines} are wanted"
        )
    group = placement_group([{"CPU": cores, "memory": memory_bytes}] * machines, strategy="STRICT_SPREAD")
    ray.get(group.ready())
    return group


def carry(number: int, agent: Any, tell: Teller) -> None:
    """Passes on what an agent says, until it has ended."""
    try:
        while (line := ray.get(agent.hear.remote())) is not None:
            tell(machine=number, line=line)
        status, complaint = ray.get(agent.ended.remote())
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        tell(machine=number, ended=f"{how}{complaint and f': {complaint}'}")
    except ray.exceptions.RayError as error:
        tell(machine=number, ended=f"was lost with its Ray worker ({type(error).__name__})")


def main() -> None:
    """Does what the engine asks for until that says no more."""
    tell = Teller()
    wanted = json.loads(sys.stdin.readline())
    try:
        ray.init(address="auto", namespace="dilaton", log_to_driver=False, configure_logging=False)
        group = reserve(wanted["machines"], wanted["cores"], wanted["memory_bytes"])
        agents = [
            ray.remote(Agent)
            .options(
                num_cpus=wanted["cores"],
                memory=wanted["memory_bytes"],
                max_restarts=0,
                # What waits for a line keeps nothing else from being said.
                max_concurrency=4,
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number),
            )
            .remote()
            for number in range(wanted["machines"])
        ]
        nodes = {node["NodeID"]: node for node in ray.nodes()}
        found = [nodes[node] for node in ray.get([agent.node.remote() for agent in agents])]
    except (ray.exceptions.RayError, ConnectionError, ValueError, RuntimeError) as error:
        # Ray's own are of a worker, or a machine, that was there and is gone.
        is_lost = isinstance(error, ray.exceptions.RayError)
        tell(failed=str(error).strip().splitlines()[0], is_lost=is_lost)
        return
    tell(names=named([node["NodeName"] for node in found]), addresses=[node["NodeManagerAddress"] for node in found])
    for number, agent in enumerate(agents):
        threading.Thread(target=carry, args=(number, agent, tell), daemon=True).start()
    for line in sys.stdin:
        said = json.loads(line)
        agents[said["machine"]].say.remote(said["line"])
    for finishing in [agent.finish.remote() for agent in agents]:
        with contextlib.suppress(ray.exceptions.RayError):
            ray.get(finishing, timeout=END_HOST_S_MAX)


def named(names: list[str]) -> list[str]:
    """Names of machines, of which no two are the same: one host may be several machines of a cluster."""
    return [
        f"{name}#{names[:place].count(name)}" if names.count(name) > 1 else name for place, name in enumerate(names)
    ]


if __name__ == "__main__":
    main()
    # Without Ray's farewell, which waits for machines that are gone: with the process everything ends.
    os._exit(0)
