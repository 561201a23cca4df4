"""Disks take the time that their models say, in virtual time, and keep what nodes write."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE_HOST_S, RunLab, held_run
from tests.host.processes import kernels

FIO = "fio --name=x --filename=/dev/vda --direct=1 --output-format=json"


def fio(text: str) -> dict[str, Any]:
    """What fio says of its one job."""
    job: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
    return job


def latencies_ms(job: dict[str, Any], direction: str) -> tuple[float, float]:
    """The least and the median from the submission of a request to its end."""
    found = job[direction]["clat_ns"]
    return float(found["min"]) / 1e6, float(found["percentile"]["50.000000"]) / 1e6


@pytest.mark.parametrize(("tdf", "slack_ms"), [(1, 0.3), (10, 0.03)])
def test_fio_measures_the_latency_of_the_model_at_any_tdf(run_lab: RunLab, tdf: int, slack_ms: float) -> None:
    """What is more is the CPU time of the guest's kernel and fio for a request, some 25 us of the host's."""
    outcome = run_lab(f"""
name: latency
time: {{tdf: {tdf}}}
nodes:
  a: {{disk: {{fixed: {{read_latency: 1ms, write_latency: 300us, bandwidth: 100MB/s}}, size: 1GB, mount: none}}}}
run:
  - {{on: a, name: read, exec: {FIO} --rw=randread --bs=4k --number_ios=200}}
  - {{on: a, name: write, after: read, exec: {FIO} --rw=write --bs=100k --number_ios=100}}
""")
    assert outcome.status == 0
    for name, expected_ms in (("read", 1.04096), ("write", 1.324)):
        least_ms, median_ms = latencies_ms(fio(outcome.stdout("a", name)), name)
        assert expected_ms <= least_ms
        # Not the mean: the host may take its core away from one of them for as long as a hundred take. fio's median is
        # the middle of a bin, a hundredth wide.
        assert median_ms < 1.01 * expected_ms + slack_ms


def test_disks_with_one_model_are_apart_and_waiting_for_them_is_jumped_over(run_lab: RunLab) -> None:
    """Two disks of one guest each do 100 requests of 50 ms at once: 5 s of virtual time, not 10, most of it without any of
    the host's CPU time."""
    disk = "{fixed: {read_latency: 50ms, write_latency: 50ms, iops: 20}, size: 100MB, mount: none}"
    outcome = run_lab(f"""
name: apart
time: {{tdf: 10}}
nodes: {{a: {{disk: {disk}}}, b: {{disk: {disk}}}}}
run:
  - {{on: a, name: a, exec: {FIO} --rw=randwrite --bs=4k --number_ios=100 --verify=crc32c --do_verify=1}}
  - {{on: b, name: b, exec: {FIO} --rw=randwrite --bs=4k --number_ios=100 --verify=crc32c --do_verify=1}}
""")
    assert outcome.status == 0
    assert all(fio(outcome.stdout(node, node))["error"] == 0 for node in "ab")
    # Written and read again: 10 s, and 20 if one waited for the other. What fio itself takes is up to the host.
    assert 10 < outcome.record["time"]["virtual_s"] < 15
    assert outcome.record["fidelity"]["busy"] < 0.5


def test_what_a_node_writes_is_on_its_disk(run_lab: RunLab) -> None:
    outcome = run_lab("""
name: tree
nodes:
  whole: {disk: {model: nvme, size: 2GB}}
  part: {disk: {model: nvme, size: 2GB, mount: /srv/data}}
  memory: {}
run:
  - {on: whole, name: whole, exec: "sh -c 'df --output=source,target /etc /var/tmp /run'"}
  - {on: part, name: part, exec: "sh -c 'df --output=source,target /etc /srv/data; ls /srv/data'"}
  - {on: memory, name: memory, exec: ls /dev}
""")
    assert outcome.status == 0
    assert [line.split() for line in outcome.stdout("whole", "whole").splitlines()[1:]] == [
        ["overlay", "/"],
        ["/dev/ubda", "/var/tmp"],  # noqa: S108 - in the node
        ["tmpfs", "/run"],
    ]
    assert outcome.stdout("part", "part").split()[3:] == ["overlay", "/", "/dev/ubdb", "/srv/data", "lost+found"]
    assert "vda" not in outcome.stdout("memory", "memory")


IMAGE_LAB = """
name: image
nodes: {{db: {{disk: {{fixed: {{read_latency: 1ms, write_latency: 1ms}}, image: {image}, mount: {mount}}}}}}}
run: [{{on: db, name: it, exec: {command}}}]
"""


def test_what_is_in_an_image_is_there_in_the_next_run(run_lab: RunLab, tmp_path: Path) -> None:
    image = tmp_path / "db.img"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    write = IMAGE_LAB.format(image=image, mount="/", command="sh -c 'echo kept > /var/lib/it'")
    # Nobody has asked for it to be on the disk: it is written back when the guest is switched off.
    assert run_lab(write).status == 0
    outcome = run_lab(IMAGE_LAB.format(image=image, mount="/", command="cat /var/lib/it"))
    assert (outcome.status, outcome.stdout("db", "it")) == (0, "kept\n")


def test_what_was_synced_before_a_guest_is_killed_is_in_its_image(tmp_path: Path) -> None:
    image = tmp_path / "db.img"
    with image.open("wb") as file:
        file.truncate(8 << 20)
    script = "head -c 1M /dev/zero | tr '\\\\0' Q | dd of=/dev/vda conv=fsync; sleep 1000"
    lab = IMAGE_LAB.format(image=image, mount="none", command=json.dumps(["sh", "-c", script.replace("\\\\", "\\")]))
    with held_run(tmp_path, lab, "500s") as (process, out):
        os.kill(kernels(process.pid)[0], signal.SIGKILL)
        process.wait(PATIENCE_HOST_S)
    assert json.loads((out / "run.json").read_text())["state"] == "failed"
    assert image.read_bytes()[: 1 << 20] == b"Q" * (1 << 20)


def test_a_full_host_is_an_io_error_of_the_node_and_marks_the_run(run_lab: RunLab, tmp_path: Path) -> None:
    """The image is on a disk of 20 MiB that vanishes with its command."""
    small = tmp_path / "small"
    small.mkdir()
    script = f'truncate -s 1G {small}/x.img; exec "$@"'
    wrapper = ["bwrap", "--dev-bind", "/", "/", "--size", str(20 << 20), "--tmpfs", small, "sh", "-c", script, "sh"]
    command = "dd if=/dev/zero of=/dev/vda bs=1M count=100 conv=fsync, expect_exit: 1"
    outcome = run_lab(IMAGE_LAB.format(image=f"{small}/x.img", mount="none", command=command), wrapper=wrapper)
    assert "Input/output error" in (outcome.path / "nodes/db/it.stderr").read_text()
    assert outcome.record["fidelity"]["disk_errors"] > 0
    assert outcome.record["verdict"]["level"] == "invalid"


def test_limits_of_the_kernel_hold_in_virtual_time(run_lab: RunLab) -> None:
    """100 reads at 100 a second (blk-throttle), the first of them at once."""
    orders = "mkdir /tmp/cg; mount -t cgroup2 cg /tmp/cg; echo 98:0 riops=100 > /tmp/cg/io.max"
    limit = {"on": "a", "name": "limit", "exec": ["sh", "-ec", orders]}
    read = {"on": "a", "name": "read", "after": "limit", "exec": f"{FIO} --rw=randread --bs=4k --number_ios=100"}
    disk = {"model": "nvme", "size": "1GB", "mount": "none"}
    outcome = run_lab(
        json.dumps({"name": "kernel", "time": {"tdf": 10}, "nodes": {"a": {"disk": disk}}, "run": [limit, read]})
    )
    assert outcome.status == 0
    assert 80 < fio(outcome.stdout("a", "read"))["read"]["iops"] < 125


def test_a_node_has_no_more_memory_than_its_limit(run_lab: RunLab) -> None:
    outcome = run_lab("""
name: memory
nodes: {small: {memory: 32MB}, large: {}}
run:
  - {on: small, name: small, exec: "sh -c 'head -c 64M /dev/zero | tail -c 64M > /dev/null'", expect_exit: any}
  - {on: large, name: large, exec: "sh -c 'head -c 64M /dev/zero | tail -c 64M > /dev/null'"}
""")
    assert outcome.process("small")["exit"] != 0
    assert outcome.process("large")["exit"] == 0
