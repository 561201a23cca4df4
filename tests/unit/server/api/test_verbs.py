"""What the command line can do, an endpoint can, but for what is about the machine where somebody types."""

from __future__ import annotations

from pathlib import Path

from dilaton.cli.main import AT_A_SERVER, app, name_of
from dilaton.server.app import described, opened
from dilaton.server.settings import Settings

RUN = "/runs/{run}"

ENDPOINTS = {
    "run": ["POST /labs/{lab}/runs", "POST /saved/{name}/runs", f"GET {RUN}/files/{{path}}"],
    "up": ["POST /labs/{lab}/runs", "POST /saved/{name}/runs"],
    "check": ["POST /check"],
    "plan": ["POST /check", f"GET {RUN}/plan"],
    "graph": ["POST /check", f"GET {RUN}/drawing"],
    "schema": ["GET /schema/lab"],
    "sweep": ["POST /labs/{lab}/sweeps", "GET /sweeps/{sweep}"],
    "down": [f"POST {RUN}/stop"],
    "stop": [f"POST {RUN}/stop"],
    "ps": ["GET /runs"],
    "top": [f"GET {RUN}/status", f"GET {RUN}/links", f"GET {RUN}/samples"],
    "clock": [
        f"GET {RUN}/status",
        *(f"POST {RUN}/{verb}" for verb in ("hold", "release", "until", "step", "tdf", "speed")),
    ],
    "link": [f"GET {RUN}/links", f"POST {RUN}/links"],
    "fault": [f"GET {RUN}/faults", f"POST {RUN}/faults", f"POST {RUN}/faults/undo"],
    "shell": [f"WEBSOCKET {RUN}/sessions", f"POST {RUN}/terminals"],
    "cp": [f"WEBSOCKET {RUN}/sessions"],
    "forward": [f"WEBSOCKET {RUN}/sessions"],
    "vpn": [f"WEBSOCKET {RUN}/tunnels", f"GET {RUN}/plan", f"POST {RUN}/vpn"],
    "cli": [f"WEBSOCKET {RUN}/sessions"],
    "capture": [f"GET {RUN}/capture"],
    "save": [f"POST {RUN}/save", f"POST {RUN}/image"],
    "saved": ["GET /saved", "DELETE /saved/{name}"],
    "suspend": [f"POST {RUN}/suspend"],
    "resume": [f"POST {RUN}/resume", f"POST {RUN}/repeats", f"POST {RUN}/compare"],
    "logs": [f"GET {RUN}/files/{{path}}", f"GET {RUN}/events"],
    "report": [f"GET {RUN}/report"],
    "compare": ["POST /comparisons"],
    "template": [
        "GET /templates",
        "POST /templates",
        "POST /templates/{template}/labs",
        "DELETE /templates/{template}",
    ],
    "image": ["GET /images", "POST /images", "GET /images/{image}", "DELETE /images/{image}"],
    "new": ["GET /examples"],
    "export": ["POST /export"],
    "lock": ["POST /lock"],
    "scale": ["POST /scale"],
    "doctor": ["GET /machine"],
}
"""By which endpoints each verb is had, below `/api/v1`."""

HERE = {"demo", "exec", "help", "serve", "kernel", "validate", "cluster"}
"""Verbs about the machine where somebody types: its programs, its kernels, its exactness, others like it."""


def test_each_verb_is_an_endpoint_or_is_about_this_machine(tmp_path: Path) -> None:
    verbs = {name for entry in (*app.registered_commands, *app.registered_groups) if (name := name_of(entry))}
    assert verbs == {*ENDPOINTS} | HERE, "a new verb is an endpoint, or is about the machine where somebody types"
    assert not {*ENDPOINTS} & HERE and {*AT_A_SERVER} <= {*ENDPOINTS}
    description = described(opened(Settings(tmp_path))).openapi()
    there = {f"{method.upper()} {path}" for path, methods in description["paths"].items() for method in methods}
    there |= {f"WEBSOCKET {path}" for path in description["x-websockets"]}
    wanted = {endpoint.replace(" ", " /api/v1", 1) for endpoints in ENDPOINTS.values() for endpoint in endpoints}
    assert wanted <= there, wanted - there
