"""A kernel in a jail gives no file of the host a set-id bit, by whatever system call."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from errno import ENOSYS, EPERM
from fractions import Fraction
from pathlib import Path

from dilaton.host.files import CLOCK_LIBRARY
from dilaton.host.here.memory.clock_page import ClockPage
from dilaton.host.orders import Orders
from tests.conftest import PATIENCE_HOST_S

TRIES = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
HERE, CREATE, WRITE, TMPFILE, REGULAR = -100, os.O_CREAT, os.O_WRONLY, os.O_TMPFILE, 0o100000
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *arguments)
    return ctypes.get_errno() if result < 0 else 0
def calls(bits):
    plain = os.open(b"plain", CREATE | WRITE, 0o644)
    how = (ctypes.c_uint64 * 3)(CREATE | WRITE, 0o755 | bits, 0)
    return {
        "open": call(2, b"open", CREATE | WRITE, 0o755 | bits),
        "openat": call(257, HERE, b"openat", CREATE | WRITE, 0o755 | bits),
        "nameless": call(257, HERE, b".", TMPFILE | WRITE, 0o755 | bits),
        "creat": call(85, b"creat", 0o755 | bits),
        "mknod": call(133, b"mknod", REGULAR | 0o755 | bits, 0),
        "mknodat": call(259, HERE, b"mknodat", REGULAR | 0o755 | bits, 0),
        "chmod": call(90, b"plain", 0o755 | bits),
        "fchmod": call(91, plain, 0o755 | bits),
        "fchmodat": call(268, HERE, b"plain", 0o755 | bits),
        "fchmodat2": call(452, HERE, b"plain", 0o755 | bits, 0),
        "openat2": call(437, HERE, b"openat2", how, 24),
        "io_uring_setup": call(425, 1, ctypes.create_string_buffer(120)),
        "newer": call(463),
        "x32": call(0x40000000 + 90, b"plain", 0o755 | bits),
        # The mode of a file that is there already is what some register had.
        "read": call(257, HERE, b"plain", os.O_RDONLY, 0o755 | bits),
        "directory": call(257, HERE, b".", os.O_DIRECTORY, 0o755 | bits),
    }
libc.prctl(36, 0, 0, 0, 0)
tried = {oct(bits): calls(bits) for bits in (0o4000, 0o2000, 0o6000)}
if os.fork() == 0:
    tried["child"] = call(90, b"plain", 0o4755)
    print(json.dumps(tried), flush=True)
    os._exit(0)
os.wait()
plain = [call(2, b"new", CREATE | WRITE, 0o755), call(90, b"new", 0o1777), call(257, HERE, b".", TMPFILE | WRITE, 0o600)]
print(json.dumps(plain), flush=True)
"""

WITHOUT_RIGHTS = "import ctypes, os, sys; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Gains no rights any more (PR_SET_NO_NEW_PRIVS), as everything in a jail, and becomes another program."""

REFUSED = ("open", "openat", "nameless", "creat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "fchmodat2")
MISSING = ("openat2", "io_uring_setup", "newer", "x32")


def test_no_system_call_gives_a_file_a_set_id_bit(tmp_path: Path) -> None:
    python = str(Path(sys.executable).resolve())
    with closing(ClockPage(0)) as page:
        page.command(Orders(Fraction(1), "wall"))
        variable = ",".join(map(str, (*page.guest_fds, -1, -1)))
        clock = [f"LD_PRELOAD={CLOCK_LIBRARY}", f"DILATON_CLOCK={variable}", "GLIBC_TUNABLES=glibc.pthread.rseq=0"]
        run = subprocess.run(
            [python, "-c", WITHOUT_RIGHTS, "/usr/bin/env", *clock, python, "-c", TRIES],
            cwd=tmp_path,
            pass_fds=page.guest_fds,
            stdout=subprocess.PIPE,
            check=True,
            timeout=PATIENCE_HOST_S,
        )
    tried, plain = map(json.loads, run.stdout.splitlines())
    expected = dict.fromkeys(REFUSED, EPERM) | dict.fromkeys(MISSING, ENOSYS) | {"read": 0, "directory": 0}
    assert tried == dict.fromkeys(("0o4000", "0o2000", "0o6000"), expected) | {"child": EPERM}
    assert plain == [0, 0, 0], "what is no set-id bit is nobody's business"
    assert not any(path.stat().st_mode & 0o6000 for path in tmp_path.iterdir())
