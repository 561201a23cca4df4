"""A load is sent at exactly its instants, as the other node sees it, counted at its end, and leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dilaton
from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.time.test_repeatable import left

DATE_S = 1767225600
"""At virtual 0 on the event drive: 1 January 2026."""

DELAY_S = 0.001

LATE_S = 5e-5
"""What making a sender and its first sockets takes on the event drive, at most."""

SINK = f"""
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
    sink.bind(("", 9))
    while True:
        data = sink.recv(2000)
        print(len(data), time.time() - {DATE_S}, flush=True)
"""

SERVER = f"""
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, time.time() - {DATE_S}, flush=True)
        self.send_response(503 if self.path == "/busy" else 200)
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("", 80), Handler).serve_forever()
"""

LEFT = "cat /proc/net/tcp /proc/net/udp /proc/net/raw | grep -c :; ls /proc | grep -c '^[0-9]'"


def python(program: str) -> str:
    return json.dumps([str(PYTHON), "-I", "-S", "-c", program])


LAB = f"""
name: loads
time: {{drive: event}}
nodes: {{attacker: {{}}, web: {{}}}}
links: [{{endpoints: [attacker, web], delay: {DELAY_S * 1000:g}ms}}]
run:
  - {{on: web, name: sink, background: true, exec: {python(SINK)}}}
  - {{on: web, name: server, background: true, ready: {{tcp: 80}}, exec: {python(SERVER)}}}
  - {{on: attacker, name: before, exec: [sh, -c, "{LEFT}"], start: 500ms}}
  - {{on: attacker, name: afterwards, exec: [sh, -c, "{LEFT}"], start: 4500ms}}
measure: {{capture: ["web:eth0"]}}
faults:
  - {{name: datagrams, at: 1s, for: 500ms, load: {{from: attacker, to: web, udp: 1000/s, size: 100B}}}}
  - {{name: segments, at: 2s, for: 500ms, load: {{from: attacker, to: web, syn: 800/s}}}}
  - {{name: requests, at: 3s, for: 500ms, load: {{from: attacker, to: web, http: 100/s, path: /index}}}}
  - {{name: busy, at: 4s, for: 100ms, load: {{from: attacker, to: web, http: 100/s, path: /busy}}}}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    return outcome


def ends(outcome: Outcome) -> dict[str, tuple[int, int, int, int]]:
    """What has come of each load: sent, refused, answered, failed."""
    undone = [event for event in outcome.events if event["kind"] == "undone" and "sent" in event]
    return {event["fault"]: (event["sent"], event["refused"], event["answered"], event["failed"]) for event in undone}


def is_every(instants: list[float], begin_s: float, every_s: float, count: int) -> bool:
    """Whether these are that many, from the begin on, by turns and not a bit earlier."""
    late = [instant - begin_s - number * every_s for number, instant in enumerate(instants)]
    return len(late) == count and all(0 <= each < LATE_S for each in late)


def test_the_other_node_gets_each_datagram_at_its_instant(outcome: Outcome) -> None:
    rows = [line.split() for line in outcome.stdout("web", "sink").splitlines()]
    assert {size for size, _ in rows} == {"100"}
    assert is_every([float(instant) for _, instant in rows], 1 + DELAY_S, 0.001, 500)


def test_the_other_node_gets_each_segment_at_its_instant_and_nobody_hears_its_answer(outcome: Outcome) -> None:
    packets = dilaton.load(outcome.path).packets("web:eth0")
    # The answer to the last one comes when nobody keeps quiet about it any more.
    meanwhile = packets[(packets["t_s"] > 2) & (packets["t_s"] < 2.5 + DELAY_S)]
    came = meanwhile[meanwhile["direction"] == "in"]
    assert is_every([float(instant) for instant in came["t_s"]], 2 + DELAY_S, 1 / 800, 400)
    assert set(came["tcp_flags"]) == {2}
    assert came["source_port"].nunique() == 400
    # Answers to all, in which the server has its cookies once its queue is full.
    assert (meanwhile[meanwhile["direction"] == "out"]["tcp_flags"] == 0x12).sum() >= 399


def test_requests_are_sent_at_their_instants_and_answered(outcome: Outcome) -> None:
    rows = [line.split() for line in outcome.stdout("web", "server").splitlines()]
    asked = [float(instant) for path, instant in rows if path == "/index"]
    # Three times over the link: the connection, and then the request.
    assert len(asked) == 50
    assert all(0 <= instant - (3 + 3 * DELAY_S + number / 100) < 0.001 for number, instant in enumerate(asked))
    assert sum(path == "/busy" for path, _ in rows) == 10


def test_the_event_of_the_end_says_how_many_were_sent_and_answered(outcome: Outcome) -> None:
    assert ends(outcome) == {
        "datagrams": (500, 0, 0, 0),
        "segments": (400, 0, 0, 0),
        "requests": (50, 0, 50, 0),
        "busy": (10, 0, 0, 10),
    }
    seen = [(event["kind"], event["fault"], round(event["t_ns"] / 1e6)) for event in outcome.events if "fault" in event]
    assert seen[:4] == [
        ("began", "datagrams", 1000),
        ("undone", "datagrams", 1500),
        ("began", "segments", 2000),
        ("undone", "segments", 2500),
    ]
    told = " ".join(outcome.terminal.split())
    assert "requests undone load attacker to web http 100/s: 50 sent, 50 answered" in told


def test_nothing_is_left_of_it(outcome: Outcome) -> None:
    assert outcome.stdout("attacker", "afterwards") == outcome.stdout("attacker", "before")


def test_it_follows_from_the_seed(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)


TROUBLE = f"""
name: loads-in-trouble
time: {{drive: event}}
nodes: {{attacker: {{}}, web: {{}}, other: {{}}}}
links: [{{endpoints: [attacker, web], delay: 1ms}}, {{endpoints: [web, other], delay: 1ms}}]
run:
  - {{on: web, name: sink, background: true, exec: {python(SINK)}}}
stop_after: 6s
faults:
  - {{name: nobody, at: 500ms, for: 500ms, load: {{from: attacker, to: web, http: 100/s, port: 8080}}}}
  - {{at: 1s, for: 500ms, link: attacker--web, down: true}}
  - {{name: dark, at: 1s, for: 1s, load: {{from: attacker, to: web, udp: 100/s}}}}
  - {{name: dark-too, at: 1s, for: 1s, load: {{from: attacker, to: web, syn: 100/s}}}}
  - {{at: 2250ms, for: 250ms, pause: attacker}}
  - {{name: late, at: 2s, for: 1s, load: {{from: attacker, to: web, udp: 100/s}}}}
  - {{at: 3500ms, for: 250ms, crash: attacker}}
  - {{name: torn, at: 3s, for: 1s, load: {{from: attacker, to: web, udp: 100/s}}}}
  - {{name: both, at: 4s, for: 1s, load: {{from: "[ao]*r", to: web, udp: 100/s}}}}
  - {{name: endless, at: 5s, load: {{from: other, to: attacker, udp: 0.5/s}}}}
"""


def test_what_a_load_meets_is_counted_and_harms_nothing(run_lab: RunLab) -> None:
    outcome = run_lab(TROUBLE)
    assert outcome.status == 0, outcome.terminal
    assert ends(outcome) == {
        "nobody": (50, 0, 0, 50),
        "dark": (50, 50, 0, 0),
        "dark-too": (50, 50, 0, 0),
        "late": (100, 0, 0, 0),
        "torn": (50, 0, 0, 0),
        "both-1": (100, 0, 0, 0),
        "both-2": (100, 0, 0, 0),
        "endless": (1, 0, 0, 0),
    }
    came = [float(line.split()[1]) for line in outcome.stdout("web", "sink").splitlines()]
    # What was due while the node stood still comes when it goes on, with the next one.
    assert sum(2.25 + DELAY_S < instant < 2.5 for instant in came) == 0
    assert sum(2.5 <= instant < 2.5 + 2 * DELAY_S for instant in came) == 26


def test_what_a_node_has_sent_is_known_also_when_it_boots_with_another_kernel(run_lab: RunLab) -> None:
    lab = f"""
name: loads-and-kernels
time: {{drive: event}}
nodes: {{attacker: {{guest: own}}, web: {{}}}}
links: [{{endpoints: [attacker, web], delay: 1ms}}]
run:
  - {{on: web, name: sink, background: true, exec: {python(SINK)}}}
stop_after: 4s
faults:
  - {{at: 1500ms, for: 500ms, crash: attacker}}
  - {{name: torn, at: 1s, for: 2s, load: {{from: attacker, to: web, udp: 100/s}}}}
"""
    outcome = run_lab(lab)
    assert outcome.status == 0, outcome.terminal
    assert ends(outcome) == {"torn": (50, 0, 0, 0)}
    # What is on the way when it crashes is lost.
    assert len(outcome.stdout("web", "sink").splitlines()) == 50


def test_a_load_by_hand_ends_when_it_is_undone(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(TROUBLE.partition("faults:")[0])
    with dilaton.start(lab, out=tmp_path / "run", hold_at=1) as run:
        flood = run.fault({"load": {"from": "attacker", "to": "web", "udp": "1000/s"}})
        run.until(2)
        run.fault({"load": {"from": "other", "to": "web", "udp": "10/s"}, "for": "1s"})
        flood.undo()
        run.release()
        outcome = run.wait()
    events = outcome.events
    sent = {row.fault: (int(row.sent), row.t_s) for row in events[events.kind == "undone"].itertuples()}
    assert sent["hand1"] == (1000, pytest.approx(2, abs=1e-6))
    assert sent["hand2"] == (10, pytest.approx(3, abs=1e-6))
