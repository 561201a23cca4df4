"""Mininet's own tests in virtual time: each file of them in a guest of its own, as it is.

    .venv/bin/python benches/mininet.py [--tdf 1] [--patience 250] [FILE…]

FILE is a test of Mininet's: of its examples, which the Debian package has and which are the default, or of its source's
`mininet/test`. They need the Debian packages mininet, openvswitch-switch, openvswitch-testcontroller and
python3-pexpect, and some of them openssh-server, vlan, or the Internet.

docs/exec.md quotes the table. Nothing is changed in Mininet; in the guest's file tree its programs get the names by
which Mininet's tests call them. Host seconds are only there to plan with.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path("/usr/share/doc/mininet/examples/test")
PREPARE = """
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin IPERF_INTERVAL=1
ln -sf /usr/bin/python3 /usr/local/bin/python
ln -sf /usr/bin/ovs-testcontroller /usr/local/bin/controller
update-alternatives --set iptables /usr/sbin/iptables-legacy > /dev/null
mkdir -p /run/sshd
service openvswitch-switch start > /dev/null
exec python3 -W ignore -m unittest -v "$1"
"""
VERDICT = re.compile(r"^(OK|FAILED|NO TESTS RAN)( \(.*\))?$", re.MULTILINE)
RAN = re.compile(r"^Ran (\d+) test", re.MULTILINE)


def outcome(test: Path, tdf: str, patience_host_s: float, log: Path | None) -> tuple[str, str]:
    """The number of tests in a file, and unittest's own word for how they went."""
    command = [sys.executable, "-m", "dilaton", "exec", "-T", "--tdf", tdf, "--", "sh", "-c", PREPARE, "sh"]
    with subprocess.Popen(
        [*command, test.stem],
        cwd=test.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as running:
        try:
            printed, _ = running.communicate(timeout=patience_host_s)
        except subprocess.TimeoutExpired:
            running.terminate()
            printed, _ = running.communicate()
            printed += f"\nnot over after {patience_host_s:g} host seconds\n"
    if log is not None:
        (log / f"{test.stem}.log").write_text(printed)
    ran, verdict = RAN.search(printed), VERDICT.search(printed)
    return ran[1] if ran else "?", verdict[0] if verdict else printed.strip().splitlines()[-1]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--tdf", default="1")
    parser.add_argument("--patience", type=float, default=250, help="host seconds for a file")
    parser.add_argument("--log", type=Path, help="directory for what each file prints")
    asked = parser.parse_args()
    print("| test | tests | outcome | host s |", "| --- | --- | --- | --- |", sep="\n", flush=True)
    for test in asked.files or sorted(EXAMPLES.glob("test_*.py")):
        begin = time.monotonic()
        tests, verdict = outcome(test.resolve(), asked.tdf, asked.patience, asked.log)
        print(f"| {test.stem} | {tests} | {verdict} | {time.monotonic() - begin:.0f} |", flush=True)


if __name__ == "__main__":
    main()
