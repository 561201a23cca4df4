"""An ordinary user, without any privilege, runs labs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.host.ordinary import NOBODY, interpreter

LAB = """
name: ordinary
nodes: {a: {}, b: {}}
links: [{endpoints: a -- b, delay: 5ms}]
run:
  - {on: a, name: who, exec: id -un}
  - {on: a, name: user, exec: id -un, user: daemon}
  - {on: a, name: write, exec: "sh -c 'echo changed >> /etc/hostname; mount -t tmpfs none /mnt; echo it > ~/file; cat ~/file'"}
  - {on: a, name: daemon, exec: nginx -t}
  - {on: a, name: ping, exec: ping -c 3 -i 0.01 b}
expect: [ping.loss == 0%]
"""


@pytest.mark.skipif(os.getuid() != 0, reason="every other test does this when the tests run as an ordinary user")
def test_a_lab_runs_as_a_user_without_privileges(open_directory: Path) -> None:
    lab, out = open_directory / "lab.yaml", open_directory / "run"
    lab.write_text(LAB)
    as_nobody = [
        "setpriv",
        "--reuid",
        NOBODY,
        "--regid",
        NOBODY,
        "--clear-groups",
        "--bounding-set",
        "-all",
        "--no-new-privs",
    ]
    command = [*as_nobody, *interpreter(), "-m", "dilaton", "run", str(lab), "--out", str(out)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(open_directory)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr, sep="\n")
    assert done.returncode == 0
    assert (out / "nodes/a/who.stdout").read_text() == "root\n"
    assert (out / "nodes/a/user.stdout").read_text() == "daemon\n"
    assert {path.stat().st_uid for path in out.rglob("*")} == {int(NOBODY)}
    assert sorted(path.name for path in open_directory.iterdir()) == ["lab.yaml", "run"]


JAILED = """
import subprocess
from dilaton.host.processes import hand_down_no_capabilities
hand_down_no_capabilities()
subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--", "true"], check=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a process capabilities")
def test_a_capability_of_a_server_keeps_no_jail_from_beginning() -> None:
    capability = ["--inh-caps", "+net_bind_service", "--ambient-caps", "+net_bind_service"]
    as_nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", *capability]
    done = subprocess.run([*as_nobody, *interpreter(), "-c", JAILED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
