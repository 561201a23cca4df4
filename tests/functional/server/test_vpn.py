"""A laptop in the network of a lab: what it reaches, what it does not, and what is left when it goes."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dilaton.server.settings import Vpn
from tests.conftest import PATIENCE_HOST_S, ROOT, command_line, dilaton, environment, started
from tests.functional.command_line.test_capture import wait_for
from tests.functional.server.test_forward import wait_for_servers
from tests.unit.server.serving import served

EXAMPLE = ROOT / "examples" / "from-outside" / "lab.yaml"
WEB, GATE, DESK = "10.0.0.1", "10.0.0.0", "10.0.0.3"
PAGE = Path("/usr/share/common-licenses/GPL-3")

ANSWERED = "ping -c 1 -W 100"
"""Over with its answer, however long a host that does much else takes for that."""

OTHER = {
    "name": "other",
    "nodes": {"x": {}, "y": {}},
    "addressing": {"p2p": "10.9.0.0/16"},
    "links": [{"endpoints": "x -- y"}],
    "run": [{"on": "x", "name": "alone", "exec": "true"}],
}


SIX = {
    "name": "six",
    "time": {"tdf": "auto"},
    "addressing": {"ipv6": "fd00:6::/48"},
    "nodes": {"gate": {"kind": "router"}, "web": {}},
    "links": [{"endpoints": "gate -- web", "delay": "5ms"}],
    "run": [
        {
            "on": "web",
            "name": "site",
            "exec": f"python3 -m http.server 80 --bind :: --directory {PAGE.parent}",
            "background": True,
            "ready": {"tcp": 80},
        },
        {"on": "gate", "name": "there", "exec": "true", "after": "site"},
    ],
}


KNOCKS = """
import socket, sys
asked, _ = socket.create_server(("", 99)).accept()
asked.recv(1000)
try:
    socket.create_connection((sys.argv[1], 8000), 3)
    asked.sendall(b"in")
except OSError:
    asked.sendall(b"nowhere")
"""
"""In a node: who connects is told whether their own port 8000 could be reached."""


@contextlib.contextmanager
def entered(file: Path, *words: str, by: signal.Signals = signal.SIGINT, **env: str) -> Iterator[str]:
    """A tunnel into a run, whose configuration this gives, as long as the command goes on."""
    command = command_line(*words, "--to", str(file))
    vpn = subprocess.Popen(command, env=environment() | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert vpn.stdout is not None
    try:
        said = vpn.stdout.readline() + vpn.stdout.readline()
        assert f"sudo wg-quick up {file}" in said, vpn.communicate()
        yield file.read_text()
        vpn.send_signal(by)
        assert vpn.wait(PATIENCE_HOST_S) == (-by if by == signal.SIGKILL else 0)
    finally:
        vpn.kill()
        vpn.communicate()


def laptop(directory: Path, configuration: str, command: str) -> subprocess.CompletedProcess[str]:
    """Executes a command on a laptop that has a tunnel by this configuration, and no other network."""
    (told := directory / "laptop.conf").write_text(configuration)
    found = re.search(r"Endpoint = (.*):(\d+)", configuration)
    assert found is not None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.connect((found[1], int(found[2])))

        def out() -> None:
            with contextlib.suppress(OSError):
                while data := ours.recv(1 << 16):
                    with contextlib.suppress(ConnectionRefusedError):
                        there.send(data)

        def back() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with contextlib.suppress(ConnectionRefusedError):
                        ours.send(there.recv(1 << 16))

        for way in (out, back):
            threading.Thread(target=way, daemon=True).start()
        apart = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child"]
        done = subprocess.run(
            [*apart, sys.executable, "-m", "tests.functional.server.laptop", str(told), command],
            cwd=ROOT,
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=PATIENCE_HOST_S,
            check=False,
        )
        for end in (ours, there):
            end.shutdown(socket.SHUT_RDWR)
        return done


def within(run: Path, node: str, command: str) -> str:
    return dilaton("shell", run, node, "--", "sh", "-c", command).stdout


def until_well(command: str) -> str:
    """The command, again and again until it is well."""
    return f"until {command}; do sleep 0.1; done"


def widened(configuration: str) -> str:
    """The configuration of somebody who would reach everything."""
    return re.sub("AllowedIPs = .*", "AllowedIPs = 0.0.0.0/1, 128.0.0.0/1", configuration)


@contextlib.contextmanager
def running(lab: Path, out: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with started("run", lab, "--out", out, "--stay", *words, **streams) as run:
        wait_for_servers(out)
        yield run


def test_a_laptop_reaches_the_lab_and_the_record_says_so(tmp_path: Path) -> None:
    out, file = tmp_path / "run", tmp_path / "office.conf"
    with running(EXAMPLE, out) as run:
        with entered(file, "vpn", str(out)) as told:
            assert "AllowedIPs = 10.0.0.0/30\n" in told
            seeing = subprocess.Popen(
                command_line("capture", out, "gate:eth0", "icmp", "-c", "3"), stdout=subprocess.PIPE, text=True
            )
            # That of the tunnel is none.
            wait_for(out, "session-began")
            done = laptop(
                tmp_path, told, f"ping -c 1 {DESK} && ping -c 20 -i 0.2 {WEB} && curl -sSf http://{WEB}/GPL-3"
            )
            seen, _ = seeing.communicate(timeout=PATIENCE_HOST_S)
            assert done.returncode == 0, done
            assert done.stdout.endswith(PAGE.read_text())
            # From the end of the link there to its end here, in virtual time: half of its delay is before that.
            lines = [line.split() for line in seen.splitlines() if " icmp" in line]
            first = next(number for number, line in enumerate(lines) if line[2] == "out")
            asked, answered = lines[first : first + 2]
            assert (asked[2], asked[5], answered[2], answered[3]) == ("out", WEB, "in", WEB)
            assert float(answered[0]) - float(asked[0]) == pytest.approx(0.02, abs=0.005)
        assert not file.exists(), "its keys are worth nothing any more"
        assert dilaton("stop", out).returncode == 0
        printed, _ = run.communicate(timeout=PATIENCE_HOST_S)
    record: dict[str, Any] = json.loads((out / "run.json").read_text())
    (reached,) = record["from_outside"]
    assert (reached["node"], reached["port"], reached["connections"]) == ("gate", None, 1)
    for text in (printed, (out / "report.html").read_text()):
        assert "influenced from outside by the network of gate (1 tunnel)" in " ".join(text.split())


def test_a_tunnel_leads_nowhere_else(tmp_path: Path) -> None:
    (lab := tmp_path / "other.yaml").write_text(json.dumps(OTHER))
    out, other, file = tmp_path / "run", tmp_path / "other", tmp_path / "office.conf"
    with socket.create_server(("0.0.0.0", 0)) as host, running(EXAMPLE, out), running(lab, other):
        port = host.getsockname()[1]
        with entered(file, "vpn", str(out)) as told, entered(tmp_path / "x.conf", "vpn", str(other), "x") as second:
            mine = re.search(r"Address = (.*)/32", told)
            assert mine is not None
            # Whoever asks for more than the configuration says gets no more.
            tries = [f"{ANSWERED} {WEB}", "! ping -c 1 -W 2 10.9.0.0", "! ping -c 1 -W 2 10.9.0.1"]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                asking.connect(("192.0.2.1", 9))  # sends nothing; tells by which address this machine would
                tries.append(f"! curl -s -m 2 http://{asking.getsockname()[0]}:{port}/")
            done = laptop(tmp_path, widened(told), " && ".join(tries))
            assert done.returncode == 0, done
            host.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                raise AssertionError(host.accept())

            # A node that does not forward leads to itself alone.
            done = laptop(tmp_path, widened(second), f"{ANSWERED} 10.9.0.0 && ! ping -c 1 -W 2 10.9.0.1")
            assert done.returncode == 0, done

            # Nobody in the lab gets to the laptop, though it is in their network and something listens there.
            knocks = f"timeout 600 python3 -c {shlex.quote(KNOCKS)} {mine[1]}"
            knocking = threading.Thread(target=within, args=(out, "gate", knocks))
            knocking.start()
            serving = f"python3 -m http.server 8000 & {until_well(f'curl -s -o /dev/null http://{mine[1]}:8000/')}"
            asking_gate = until_well(f"answer=$(curl -s --http0.9 http://{GATE}:99/)")
            done = laptop(tmp_path, told, f"{serving}; {asking_gate}; echo it came $answer")
            knocking.join()
            assert "it came nowhere\n" in done.stdout, done

            # A key that is another's, be it of another run here, opens nothing.
            swapped = re.sub("PrivateKey = .*", re.search("PrivateKey = .*", second)[0], told)  # type: ignore[index]
            assert laptop(tmp_path, swapped, f"ping -c 1 -W 3 {WEB}").returncode == 1


def test_a_killed_tunnel_leaves_nothing_in_the_node(tmp_path: Path) -> None:
    out, file = tmp_path / "run", tmp_path / "office.conf"
    # Where the kernel has no iptables, filters of packets do it.
    filters = "for i in /sys/class/net/*; do tc filter show dev ${i##*/} egress; done"
    look = f"ip -o link; ip route; iptables-legacy -t nat -S; {filters}"
    with running(EXAMPLE, out):
        before = within(out, "gate", look)
        for by in (signal.SIGKILL, signal.SIGTERM):
            with entered(file, "vpn", str(out), "gate", by=by) as told:
                during = within(out, "gate", look)
                assert "vpn0" in during and ("MASQUERADE" in during or "nat src addr" in during)
            assert (
                within(out, "gate", "for i in $(seq 100); do [ -e /sys/class/net/vpn0 ] || break; sleep 0.1; done")
                == ""
            )
            assert within(out, "gate", look) == before
            assert laptop(tmp_path, told, f"ping -c 1 -W 2 {WEB}").returncode == 1
            assert file.exists() == (by == signal.SIGKILL)
            file.unlink(missing_ok=True)
        with entered(file, "vpn", str(out), "gate") as told:
            assert laptop(tmp_path, told, f"ping -c 1 -W 5 {WEB}").returncode == 0
            assert dilaton("clock", out, "hold").returncode == 0
            assert laptop(tmp_path, told, f"ping -c 1 -W 2 {WEB}").returncode == 1, "packets wait for the clock"
            assert dilaton("clock", out, "release").returncode == 0
            assert laptop(tmp_path, told, f"ping -c 1 -W 5 {WEB}").returncode == 0, "the tunnel does not"
        within(out, "gate", "rm /dev/net/tun")
        refused = dilaton("vpn", out, "gate", "--to", file)
        assert "gate: make a device for packets from outside" in refused.stderr and refused.returncode == 1, refused
        assert refused.stdout == "" and not file.exists(), "nobody is told to use a tunnel that there is not"


def test_a_laptop_reaches_a_servers_lab_by_who_may(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        me = server.client()
        token = me.api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]
        reading = me.api("POST", "/tokens", {"label": "y", "scopes": ["Run.Read", "Run.Console"], "days": 1})["secret"]
        run = me.launch(me.keep(EXAMPLE.read_text()), stays=True)
        me.wait(run, "running")
        wait_for_servers(server.state.keeper.run_dir(run))
        to = ("--server", server.settings.origin, "vpn", run)
        with entered(tmp_path / "there.conf", *to, DILATON_TOKEN=token) as told:
            done = laptop(tmp_path, told, f"curl -sSf http://{WEB}/GPL-3 | wc -c")
            assert done.stdout.split() == [str(PAGE.stat().st_size)], done
        refused = dilaton(*to, "--to", tmp_path / "no.conf", env=environment() | {"DILATON_TOKEN": reading})
        assert refused.returncode != 0 and not (tmp_path / "no.conf").exists()
        me.api("POST", f"/runs/{run}/stop")
        me.wait(run, "finished", "aborted")
        assert [one["node"] for one in me.api("GET", f"/runs/{run}/record")["from_outside"]] == ["gate"]
        (done_by,) = (one["data"]["argv"] for one in me.api("GET", "/audit") if one["action"] == "run.vpn")
        assert done_by[0] == "tunnel"


def test_a_laptop_comes_in_by_a_port_of_the_server_until_it_is_told_to_leave(tmp_path: Path) -> None:
    port = free_ports()[0]
    with served(tmp_path, vpn=Vpn((("127.0.0.1", port),))) as server:
        me = server.client()
        run = me.launch(me.keep(EXAMPLE.read_text()), stays=True)
        me.wait(run, "running")
        wait_for_servers(server.state.keeper.run_dir(run))
        path = f"/runs/{run}/vpn"
        assert "no such node" in me.api("POST", path, {"node": "nowhere"}, status=422)["detail"]
        with me.stream("/events") as events:
            assert next(events)[1] == "ready"
            opened = me.api("POST", path, {})
            told = opened.pop("configuration")
            assert opened["node"] == "gate" and f"Endpoint = 127.0.0.1:{port}\n" in told
            assert me.api("GET", path) == [opened]
            assert "no port" in me.api("POST", path, {}, status=409)["detail"], "there is one, which is taken"
            done = laptop(tmp_path, told, f"curl -sSf http://{WEB}/GPL-3 | wc -c")
            assert done.stdout.split() == [str(PAGE.stat().st_size)], done
            me.api("DELETE", f"{path}/{opened['tunnel']}", status=204)
            assert next(data["state"] for _, kind, data in events if kind == "tunnel") == "ended"
            assert me.api("GET", path) == []
            assert laptop(tmp_path, told, f"ping -c 1 -W 2 {WEB}").returncode == 1, "its keys are worth nothing"
            again = me.api("POST", path, {"node": "web"})
            assert (again["node"], again["port"]) == ("web", port)
            me.api("POST", f"/runs/{run}/stop")
            assert next(data["tunnel"] for _, kind, data in events if kind == "tunnel") == again["tunnel"]
        me.wait(run, "finished", "aborted")
        assert me.api("GET", path) == []
        reached = me.api("GET", f"/runs/{run}/record")["from_outside"]
        assert {one["node"]: one["connections"] for one in reached} == {"gate": 1, "web": 1}
        assert "cannot be reached" in me.api("POST", path, {}, status=409)["detail"]


def test_two_laptops_are_in_a_lab_at_once_also_by_ipv6_and_while_its_tdf_moves(tmp_path: Path) -> None:
    (lab := tmp_path / "six.yaml").write_text(json.dumps(SIX))
    out, ports = tmp_path / "run", free_ports()
    listen = ("--listen", f"127.0.0.1:{ports.start}-{ports.stop - 1}")
    with running(lab, out):
        nodes = json.loads((out / "plan.json").read_text())["nodes"]
        (web,) = (node for node in nodes if node["name"] == "web")
        (address,) = (text for text in web["interfaces"][0]["addresses"] if ":" in text)
        url, first, second = f"http://[{address.partition('/')[0]}]/GPL-3", tmp_path / "one.conf", tmp_path / "two.conf"
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken,
            entered(first, "vpn", str(out), *listen) as one,
            entered(second, "vpn", str(out), *listen) as two,
            ThreadPoolExecutor() as together,
        ):
            used = [int(re.search(r"Endpoint = .*:(\d+)", told)[1]) for told in (one, two)]  # type: ignore[index]
            assert len(set(used)) == 2 and set(used) <= set(ports), "each has a port of those that were named"
            taken.bind(("127.0.0.1", 0))
            port = f"127.0.0.1:{taken.getsockname()[1]}"
            refused = dilaton("vpn", out, "--to", tmp_path / "no.conf", "--listen", port)
            assert refused.returncode == 2 and "Address already in use" in refused.stderr
            command = f"ping -c 2 {address.partition('/')[0]} && curl -sSf '{url}' | wc -c"
            places = [tmp_path / name for name in ("a", "b")]
            for place in places:
                place.mkdir()
            both = list(together.map(laptop, places, (one, two), (command, command)))
            for done in both:
                assert done.returncode == 0 and done.stdout.split()[-1] == str(PAGE.stat().st_size), done
            devices = within(out, "gate", "ip -o link")
            assert "vpn0" in devices and "vpn1" in devices
            # Neither gets to the other one, though both are in the network of the same node.
            other = re.search(r"Address = .*, (.*)/128", two)
            assert other is not None
            wide = re.sub("AllowedIPs = .*", "AllowedIPs = ::/1, 8000::/1", one)
            done = laptop(tmp_path, wide, f"! ping -c 1 -W 2 {other[1]}")
            assert done.returncode == 0, done
        assert dilaton("stop", out).returncode == 0
    record: dict[str, Any] = json.loads((out / "run.json").read_text())
    (reached,) = record["from_outside"]
    assert (reached["node"], reached["connections"]) == ("gate", 2)


def free_ports() -> range:
    """Three ports, one behind the other, that nobody had just now."""
    while True:
        with contextlib.ExitStack() as held, contextlib.suppress(OSError, OverflowError):
            first = 0
            for offset in range(3):
                one = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                one.bind(("127.0.0.1", first and first + offset))
                first = first or one.getsockname()[1]
            return range(first, first + 3)
