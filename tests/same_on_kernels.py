"""Labs on every kernel that is here, also as it does not trace: what has to be the same.

Runs of one kernel are the same to the byte. Those of two kernels are not: on the event drive a reading of the clock takes
time, and kernels read it more or less often; and TCP, its ports and its memory are each kernel's own. So the same are how
each process ended and what it computed; and in labs where nobody sends, so that nothing waits behind TCP, the round trips of
pings to 10 us and the instant of each event to 20 us, at TDF 10.
`./dev labs --on-kernels` compares twenty random labs (`tests/random_labs.py`). With `--examples` it runs the examples as they
stand, each on its own drive: each process ends as it does on the others, unless the run stops it, and each expectation is
met, and the verdicts are printed, with how far apart is what the expectations are about.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dilaton.host.errors import HostLacksError
from dilaton.host.here.uml import interface, kernels
from tests.conftest import ROOT, Outcome, dilaton, run_in
from tests.random_labs import make_lab

ROUND_TRIP_S = 10e-6
"""What may lie between round trips on two kernels, with ping's rounding to a thousandth of what it prints."""

EXAMPLES = ROOT / "examples"
IMAGES = EXAMPLES / "images"
"""What has recipes for images."""

INSTANT_NS = 20_000
"""What may lie between the same event on two kernels, in labs where nobody sends."""


def event_lab(seed: int) -> dict[str, Any]:
    """The random lab of that seed, on the event drive."""
    lab = make_lab(seed)
    lab["time"]["drive"] = "event"
    return lab


def instants(outcome: Outcome) -> dict[tuple[str, str, int | None], int]:
    """When each process began, and when it ended with which status, virtual nanoseconds."""
    return {
        (event["process"], event["kind"], event.get("status")): event["t_ns"]
        for event in outcome.events
        if event["kind"] in ("started", "exited")
    }


def check_same(lab: dict[str, Any], one: Outcome, other: Outcome) -> None:
    """Makes sure that runs of the lab on two kernels are the same in what has to be."""
    assert (one.status, other.status) == (0, 0), f"{one.record['reason']}; {other.record['reason']}"
    has_sender = any(process["exec"].startswith("iperf3 -c") for process in lab["run"])
    for process in lab["run"]:
        name, command = process["name"], process["exec"]
        if command.startswith("md5sum"):
            assert one.stdout(process["on"], name) == other.stdout(process["on"], name), name
        elif command.startswith("ping") and not has_sender:
            first, second = (outcome.process(name)["result"] for outcome in (one, other))
            assert first["loss"] == second["loss"] == 0, name
            for kind in ("min", "avg", "max"):
                rtts_s = [result["rtt"][kind] for result in (first, second)]
                assert abs(rtts_s[0] - rtts_s[1]) <= ROUND_TRIP_S + max(rtts_s) / 1000, f"{name}: {kind}, {rtts_s} s"
    before, after = instants(one), instants(other)
    assert before.keys() == after.keys()
    if not has_sender:
        for event, t_ns in before.items():
            assert abs(t_ns - after[event]) <= INSTANT_NS, f"{event}: {t_ns} and {after[event]} ns"


def ends(outcome: Outcome) -> dict[str, tuple[str, int | None, int | None] | None]:
    """How each process ended: its outcome, status and signal; none of what the run stopped, of which some take until they are
    killed, as who leads an etcd does."""
    return {
        one["name"]: None if one["stopped"] else (one["outcome"], one["exit"], one["signal"])
        for one in outcome.record["processes"]
    }


def check_example(one: Outcome, other: Outcome) -> None:
    """Makes sure that runs of an example on two kernels came out in the same way."""
    assert ends(one) == ends(other), f"{ends(one)} and {ends(other)}"
    assert one.record["state"] == other.record["state"] == "finished"
    for check, there in zip(one.record["checks"], other.record["checks"], strict=True):
        assert check["passed"] and there["passed"], f"{check['text']}: {check['value']} and {there['value']}"


def spread(runs: Sequence[Outcome]) -> str:
    """What each expectation is about, and by how much of the largest it lies apart in these runs."""
    words = []
    for checks in zip(*(run.record["checks"] for run in runs), strict=True):
        values = [check["value"] for check in checks if check["value"] is not None]
        most = max(map(abs, values), default=0)
        apart = (max(values) - min(values)) / most if most else 0
        words.append(f"{checks[0]['text'].split()[0]} {apart:.2%}")
    return ", ".join(words)


def understood() -> list[str]:
    """The names of the kernels that are here and can be run, that of this machine first if there is one."""
    found = []
    for name in (kernels.DEBIAN, *(kernel.name for kernel in kernels.there())):
        with contextlib.suppress(HostLacksError):
            if not interface.why_not_understood(kernels.named(name).program):
                found.append(name)
    return found


def run_on(kernel: str, directory: Path, lab: str | Path, *arguments: str) -> Outcome:
    """A run of the lab on a kernel."""
    os.environ[kernels.VARIABLE] = kernel
    with contextlib.redirect_stdout(io.StringIO()):
        return run_in(directory, lab, *arguments)


def verdicts(names: Sequence[str], runs: Sequence[Outcome]) -> str:
    """The verdict of these runs; of each, where they have not all the same."""
    found = [run.record["verdict"]["level"] for run in runs]
    if len(set(found)) == 1:
        return str(found[0])
    return ", ".join(f"{verdict} on {name}" for name, verdict in zip(names, found, strict=True))


def compare_examples(names: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """Runs examples, all of them unless some are chosen, on each kernel; those that were not the same."""
    failed = []
    for example in chosen or sorted(path.parent.name for path in EXAMPLES.glob("*/lab.yaml")):
        with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory() as store:
            os.environ["XDG_DATA_HOME"] = store
            if example == IMAGES.name:
                with contextlib.redirect_stdout(io.StringIO()):
                    assert dilaton("image", "build", IMAGES).returncode == 0
            runs = [run_on(name, Path(temporary), EXAMPLES / example / "lab.yaml") for name in names]
            try:
                for name, run in zip(names, runs, strict=True):
                    assert run.status == 0, f"{name}: {run.terminal.strip()}"
                    check_example(runs[0], run)
                print(f"{example}: {verdicts(names, runs)}; {spread(runs)}", flush=True)
            except AssertionError as error:
                failed.append(example)
                print(f"{example}: {error}", flush=True)
    return failed


def compare_random(names: Sequence[str], first: int, count: int) -> list[str]:
    """Runs random labs from seed `first` on, `count` of them, on each kernel; the seeds of those that were not the same."""
    failed = []
    for seed in range(first, first + count):
        lab = event_lab(seed)
        with tempfile.TemporaryDirectory() as temporary:
            runs = [run_on(name, Path(temporary), json.dumps(lab), "--drive", "event") for name in names]
            for name, run in zip(names[1:], runs[1:], strict=True):
                try:
                    check_same(lab, runs[0], run)
                except AssertionError as error:
                    failed.append(str(seed))
                    print(f"seed {seed}, {names[0]} and {name}: {error}", flush=True)
    return failed


def main() -> int:
    """`[COUNT [SEED]]`, or `--examples [NAME...]`; the status is 1 when two kernels did not give the same."""
    names, arguments = understood(), sys.argv[1:]
    if len(names) < 2:
        sys.exit(f"only one kernel is here, {', '.join(names)}: ./dev kernels fetches others")
    if arguments[:1] == ["--examples"]:
        failed = compare_examples(names, arguments[1:])
    else:
        count, first = map(int, [*arguments, *("20", "0")[len(arguments) :]][:2])
        failed = compare_random(names, first, count)
    print(f"on {', '.join(names)}: {len(failed)} times not the same")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
