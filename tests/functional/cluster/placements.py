"""DieCast's placements: forty hosts, ten to a machine and five, give the same bytes as on one machine.

DieCast (NSDI 2008) has forty nodes on four machines, and on eight. Here they are eight racks of five hosts behind a router
each, a guest for a rack, and a router between the racks. The tests have racks of one host; `./dev placements` runs all.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.conftest import Outcome, command_line, environment

HOSTS = 5

PLACEMENTS = (4, 8)


def racks(hosts: int) -> str:
    """Eight racks of so many hosts, a guest each, around a router; all hosts of the first half fetch from the others."""
    nodes, links, runs = ["core: {kind: router, guest: r0}"], [], []
    for rack in range(8):
        nodes.append(f"s{rack}: {{kind: router, guest: r{rack}}}")
        links.append(f'{{endpoints: ["s{rack}:up", "core:d{rack}"], rate: 50Mbit, delay: 5ms}}')
        for host in range(hosts):
            nodes.append(f"h{rack}x{host}: {{guest: r{rack}}}")
            links.append(f'{{endpoints: ["h{rack}x{host}:eth0", "s{rack}:d{host}"], rate: 10Mbit, delay: 1ms}}')
    for rack, host in ((rack, host) for rack in range(4) for host in range(hosts)):
        there = f"h{7 - rack}x{host}"
        runs.append(f"{{on: {there}, name: l{rack}x{host}, exec: iperf3 -s, ready: {{tcp: 5201}}, background: true}}")
        runs.append(
            f"{{on: h{rack}x{host}, name: f{rack}x{host}, exec: iperf3 -c {there} -n 500K -J, after: l{rack}x{host}}}"
        )
    body = "".join(f"  {node}\n" for node in nodes)
    listed = {name: "".join(f"  - {each}\n" for each in of) for name, of in (("links", links), ("run", runs))}
    return (
        f"name: racks\ntime: {{drive: event}}\nguests: {{}}\nnodes:\n{body}links:\n{listed['links']}"
        f'measure: {{capture: ["core:d0", "core:d7"]}}\nrun:\n{listed["run"]}'
    )


def of_run(path: Path) -> dict[str, bytes]:
    """What has to be the same: all that nodes wrote, samples and captures."""
    kept = [file for part in ("nodes", "captures", "measure") for file in sorted((path / part).rglob("*"))]
    return {str(file.relative_to(path)): file.read_bytes() for file in kept if file.is_file()}


def happened(outcome: Outcome) -> list[dict[str, object]]:
    """Its events, but for when they were on the host."""
    return [{name: value for name, value in event.items() if name != "host_s"} for event in outcome.events]


def assert_same(outcome: Outcome, alone: Outcome) -> None:
    """That a run over machines gave what that on one did."""
    assert (outcome.status, alone.status) == (0, 0)
    assert happened(outcome) == happened(alone)
    theirs, ours = of_run(outcome.path), of_run(alone.path)
    assert any(ours.values())
    assert [name for name in ours | theirs if ours.get(name) != theirs.get(name)] == []
    for part in ("processes", "checks", "verdict"):
        assert outcome.record[part] == alone.record[part]


def main() -> None:
    """Runs all of it, and says what was compared and how long it took."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        lab = Path(directory) / "lab.yaml"
        lab.write_text(racks(HOSTS))

        def run(machines: int) -> Outcome:
            out = Path(directory) / f"over{machines}"
            over = () if machines == 1 else ("--machines", str(machines))
            command = command_line("run", lab, "--out", out, *over)
            done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
            return Outcome(done.returncode, done.stdout + done.stderr, out)

        alone = run(1)
        for machines in PLACEMENTS:
            outcome = run(machines)
            assert_same(outcome, alone)
            compared = of_run(outcome.path)
            host_s = [each.record["time"]["host_s"] for each in (alone, outcome)]
            print(
                f"{8 * HOSTS} hosts on {machines} machines, {8 * HOSTS // machines} on each: {len(outcome.events)} events and "
                f"{len(compared)} files of {sum(map(len, compared.values()))} bytes as on one, in {host_s[1]:.1f} s of "
                f"the host in place of {host_s[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
