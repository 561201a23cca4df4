"""Regular expressions of a lab over what programs printed, in a process with limits.

Python's engine tries alternatives one after the other: over a line of thirty characters `(a+)+b` takes minutes. A lab
that somebody else wrote, or a program that knows the lab, is not to keep the run from its end.
"""

from __future__ import annotations

import json
import subprocess
import sys

from dilaton.measure.results.own import UnreadableError

CPU_S_MAX = 10
"""Over 100 MB of lines, most expressions take less."""

MEMORY_BYTES_BESIDE = 1 << 30
"""The memory of the process that matches, beside eight times what was printed."""

_PROGRAM = """
import json, re, resource, sys
pattern, characters_max, cpu_s, memory_bytes = json.loads(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
found = []
for line in sys.stdin.read().splitlines():
    if len(line) <= characters_max:
        found += [match[1] for match in re.finditer(pattern, line)]
json.dump(found, sys.stdout)
"""


def find_all(pattern: str, text: str, line_characters_max: int) -> list[str | None]:
    """What the only group of an expression matches in the lines of a text; None where it takes no part in a match.

    Args:
        pattern: The expression.
        text: Lines.
        line_characters_max: Longer ones are not looked at.

    Raises:
        UnreadableError: It takes too much CPU time or memory.
    """
    limits = [pattern, line_characters_max, CPU_S_MAX, MEMORY_BYTES_BESIDE + 8 * len(text)]
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, json.dumps(limits)]
    done = subprocess.run(command, input=text.encode(errors="replace"), capture_output=True, check=False)
    if done.returncode:
        raise UnreadableError(
            f"the regular expression {pattern} took more than {CPU_S_MAX} s of CPU, or too much memory"
        )
    found: list[str | None] = json.loads(done.stdout)
    return found
