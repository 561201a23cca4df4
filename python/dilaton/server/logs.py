"""The log of a server as lines of JSON, for programs that gather logs: what goes wrong, and each request.

Whatever somebody sends is a value in such a line, with all that is not plain text escaped, so that nobody writes a line
of their own. Of a request its query is left out, since a link that lets somebody in has its secret there.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

REQUESTS = logging.getLogger("dilaton.server.requests")
"""Who is told of each request; nobody, unless the log is JSON."""

PATH_CHARS_MAX = 500


def use_json() -> None:
    """Has all that is logged in this process be lines of JSON on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    REQUESTS.setLevel(logging.INFO)


def told(method: str, path: str, status: int, host_s: float) -> None:
    """A request was answered."""
    if REQUESTS.isEnabledFor(logging.INFO):
        said = {"method": method, "path": path[:PATH_CHARS_MAX], "status": status, "host_s": round(host_s, 6)}
        REQUESTS.info("request", extra={"said": said})


class Lines(logging.Formatter):
    """Each record as a line of JSON: `at`, `level`, `logger`, `message`, what else is said, and `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "said", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)
