"""How a machine outside gets into a lab, in a process and a jail of its own: `python -m dilaton.server.labs.entering`,
JSON in, JSON out.

The plan is a file of a directory in which guests write.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic import ValidationError

from dilaton.plan.model import Plan
from dilaton.service.vpn.configuration import WayError, way_into


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """By which node, what is reached by it, and with which addresses."""
    try:
        nodes = Plan.model_validate_json(asked["plan"]).model_dump(mode="json")["nodes"]
        way = way_into(nodes, asked["node"])
    except WayError as error:
        return {"wrong": str(error)}
    except ValidationError:
        return {"wrong": "the plan of the run is none of this version"}
    return {"node": way.node, "reached": list(map(str, way.reached)), "addresses": list(map(str, way.addresses))}


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
