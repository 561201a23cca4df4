"""Watching a run that goes on: `dilaton top`, and the endpoint for Prometheus."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dilaton.run.control.answers import CLOCK_UNTIL, STATUS
from dilaton.run.control.requests import Client
from tests.conftest import dilaton, environment, started
from tests.overloaded import chain

LAB = """
name: watched
time: {tdf: 10}
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 10Mbit, delay: 10ms}]
run:
  - {on: b, name: server, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: a, name: bulk, exec: iperf3 -c b -t 30, after: server}
measure: {interfaces: 100ms, nodes: 100ms}
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """A run that is held at 5 s, and the port of its metrics."""
    directory = tmp_path_factory.mktemp("watched")
    lab, out = directory / "lab.yaml", directory / "run"
    lab.write_text(LAB)
    arguments = ("run", lab, "--out", out, "--hold-at", "5s", "--metrics", "0")
    with started(*arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        port = 0
        for line in process.stderr:
            if line.startswith("metrics: http://127.0.0.1:"):
                port = int(line.rsplit(":", 1)[1].partition("/")[0])
            if "clock held" in line:
                break
        yield out, port


def scraped(port: int) -> dict[tuple[str, ...], float]:
    """Every value that Prometheus would read, by its name and the values of its labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    families = text_string_to_metric_families(text)
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_prometheus_reads_the_clock_the_programs_and_the_latest_samples(watched: tuple[Path, int]) -> None:
    values = scraped(watched[1])
    assert values["dilaton_up",] == 1
    assert values["dilaton_virtual_seconds_total",] == 5.0
    assert values["dilaton_held",] == 1
    assert values["dilaton_process_running", "a", "bulk"] == 1
    sent = values["dilaton_interface_transmit_bytes_total", "eth0", "a"]
    assert 4e6 < sent < 6.3e6, "10 Mbit/s for nearly 5 s"
    assert values["dilaton_node_cpu_seconds_total", "a"] > 0
    counts = [value for name, value in values.items() if name[0] == "dilaton_timer_lateness_seconds_bucket"]
    assert counts == sorted(counts)
    assert counts[-1] > 100


def test_top_shows_links_programs_and_the_clock(watched: tuple[Path, int]) -> None:
    shown = dilaton("top", watched[0], env=environment() | {"COLUMNS": "200"}).stdout
    assert "virtual 5.000 s" in shown
    assert "held" in shown
    assert "verdict so far valid" in shown
    first = next(line for line in shown.splitlines() if "eth0" in line)
    assert "a:eth0" in first, "what sends most comes first"
    rate = re.search(r"([\d.]+) Mbit/s", first)
    assert rate
    assert 9.5 < float(rate[1]) < 10.5
    assert any("a/bulk" in line and "running" in line for line in shown.splitlines())


def test_top_shows_how_much_each_of_several_guests_works_and_waits(tmp_path: Path) -> None:
    lab, out = tmp_path / "lab.yaml", tmp_path / "run"
    lab.write_text(
        "name: pair\nguests: per-node\nnodes: {a: {}, b: {}}\nlinks: [{endpoints: [a, b], delay: 5ms}]\n"
        "run: [{on: a, name: work, exec: sh -c 'while :; do :; done', background: true}, {on: b, exec: sleep 9}]\n"
    )
    with started("run", lab, "--out", out, "--hold-at", "2s", stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr and any("clock held" in line for line in process.stderr)
        shown = dilaton("top", out, env=environment() | {"COLUMNS": "200"}).stdout
    rows = dict(re.findall(r"^ *([ab]) +([\d.]+) % +[\d.]+ %", shown, re.MULTILINE))
    assert list(rows) == ["a", "b"], f"the busiest first: {shown}"
    assert float(rows["a"]) > 90 and float(rows["b"]) < 50
    # And it is written down for who looks back: two seconds of work take the host as long, and a row one.
    told = [json.loads(line) for line in (out / "verdicts.jsonl").read_text().splitlines()]
    assert [guest["name"] for guest in told[-1]["guests"]] == ["a", "b"]
    assert told[-1]["guests"][0]["busy_s"] > 0.8 * told[-1]["at_ns"] / 1e9 > 0


def test_the_verdict_is_told_as_it_stands_with_its_reasons(tmp_path: Path) -> None:
    lab, out = tmp_path / "lab.yaml", tmp_path / "run"
    lab.write_text(chain("700M", "{tdf: 1}"))
    with started("run", lab, "--out", out, "--hold-at", "500ms", stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr and any("clock held" in line for line in process.stderr)
        with Client(out) as client:
            assert client.request(STATUS)["verdict"] is None, "programs have only just started"
            client.request(CLOCK_UNTIL, at="2s")
            standing, shown = None, ""
            # What has arrived until there is still worked off while the clock stands.
            while (now := client.request(STATUS)["verdict"]) != standing:
                standing = now
                shown = dilaton("top", out, env=environment() | {"COLUMNS": "400"}).stdout
    assert standing is not None
    worst = standing["reasons"][0]
    assert (standing["level"], worst["level"]) == ("suspect", "suspect")
    assert f"verdict so far suspect: {worst['what']}; {worst['advice']}" in " ".join(shown.split())


def test_nobody_else_can_connect(watched: tuple[Path, int]) -> None:
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    places = [line.split()[1] for line in listening.splitlines() if f":{watched[1]:04X} " in line.split()[1] + " "]
    assert places
    assert all(place.startswith("0100007F:") for place in places)


def test_a_port_that_is_taken_is_said_before_anything_runs(watched: tuple[Path, int], tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(LAB)
    done = dilaton("run", lab, "--metrics", str(watched[1]), cwd=tmp_path)
    assert done.returncode == 2
    assert f"--metrics: {watched[1]}: cannot listen on 127.0.0.1" in done.stderr
    assert not list(tmp_path.glob("runs/*")), "nothing is left of a run that never began"


def test_top_of_no_run_is_refused(tmp_path: Path) -> None:
    done = dilaton("top", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"dilaton: {tmp_path}: not a run directory, nor a lab that runs, nor the name of one; "
    )


def test_top_sorts_interfaces_and_shows_some_nodes_only(watched: tuple[Path, int]) -> None:
    def interfaces(*options: str) -> list[str]:
        return re.findall(r"^ *(\w+:eth\d)", dilaton("top", watched[0], "--once", *options).stdout, re.MULTILINE)

    assert interfaces("--sort", "name") == interfaces("--sort", "sends") == ["a:eth0", "b:eth0"]
    assert interfaces("--only", "b*") == ["b:eth0"]
    assert "bulk" not in dilaton("top", watched[0], "--once", "--only", "b").stdout
    refused = dilaton("top", watched[0], "--once", "--sort", "size")
    assert (refused.returncode, "must be one of sends, packets" in refused.stderr) == (2, True)
