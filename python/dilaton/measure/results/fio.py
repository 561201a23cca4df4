"""What fio prints with `--output-format=json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_DIRECTIONS = ("read", "write", "trim")


def parse(arguments: Sequence[str], stdout: str) -> dict[str, Any] | None:
    """Takes the result out of what fio printed.

    Args:
        arguments: Of fio; without the JSON format there is nothing to read.
        stdout: Its standard output.

    Returns:
        `jobs`: for each, by name, what it did of `read`, `write` and `trim`: `bytes`, `throughput` (bit/s), `iops` and
        `latency` (`min`, `avg`, `max`, and percentiles of the completion latency such as `p99`, in seconds).
        `throughput` and `iops` of all together.

        `{"error": …}` when the report breaks off or a job failed; None without the JSON format.
    """
    if not any(
        "json" in argument for argument in arguments if "output-format" in argument or argument.startswith("json")
    ):
        return None
    # Notes may stand before the report.
    text = stdout[stdout.find("{\n") :] if "{\n" in stdout else ""
    try:
        report = json.loads(text)
        failed = [job for job in report["jobs"] if job["error"]]
        if failed:
            return {"error": f"job {failed[0]['jobname']} of fio failed with error {failed[0]['error']}"}
        jobs = {str(job["jobname"]): _job(job) for job in report["jobs"]}
    except json.JSONDecodeError:
        return {"error": "the report of fio breaks off"}
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        return {"error": f"the report of fio is not as expected: {type(error).__name__}: {error}"}
    parts = [part for job in jobs.values() for part in job.values()]
    return {
        "throughput": sum(part["throughput"] for part in parts),
        "iops": sum(part["iops"] for part in parts),
        "jobs": jobs,
    }


def _job(job: dict[str, Any]) -> dict[str, Any]:
    return {name: _direction(job[name]) for name in _DIRECTIONS if job[name]["io_bytes"]}


def _direction(part: dict[str, Any]) -> dict[str, Any]:
    whole = part["lat_ns"]
    latency = {"min": whole["min"] / 1e9, "avg": whole["mean"] / 1e9, "max": whole["max"] / 1e9}
    for share, value in part.get("clat_ns", {}).get("percentile", {}).items():
        latency[f"p{float(share):g}"] = value / 1e9
    return {
        "bytes": part["io_bytes"],
        "throughput": 8 * part["bw_bytes"],
        "iops": part["iops"],
        "latency": latency,
    }
