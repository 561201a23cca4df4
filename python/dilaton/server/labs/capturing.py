"""What has to be executed to capture in a run, in a process and a jail of its own: `python -m
dilaton.server.labs.capturing`, JSON in, JSON out.

The plan is a file of a directory in which guests write, and a filter is a program that somebody wrote, which libpcap
compiles and for which it may ask the network for names.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic import ValidationError

from dilaton.plan.model import Plan
from dilaton.run.control.following import NotCapturedError, capture_command


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Where, and what."""
    try:
        node, argv = capture_command(Plan.model_validate_json(asked.pop("plan")), **asked)
    except NotCapturedError as error:
        return {"wrong": str(error)}
    except ValidationError:
        return {"wrong": "the plan of the run is none of this version"}
    return {"node": node, "argv": argv}


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
