"""A run is saved, and another one goes on from there: with its files, disks and links, at no cost of virtual time."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from dilaton.images.store import Store
from dilaton.run.control.answers import CLOCK_HOLD, CLOCK_RELEASE, CLOCK_SHOW, CLOCK_TDF
from dilaton.run.control.requests import Client
from dilaton.service.saved.save import save
from dilaton.service.saved.store import RESULTS, SavedLabs
from tests.conftest import PYTHON, ROOT, dilaton, environment, held_run, outcome_of, run_in, started
from tests.images import OWN, busybox, killed_at, layer, layout, needs_programs
from tests.postgresql import programs

STORE = ROOT / "tests" / "sqlite_store.py"

CHANGE = f"""
set -e
echo changed > /etc/own
mkdir -p /var/lib/new
echo data > /var/lib/new/data
ln -f /var/lib/new/data /var/lib/new/hard
ln -sf nowhere /var/lib/new/link
test -e /var/lib/new/pipe || mkfifo /var/lib/new/pipe
chmod 2750 /var/lib/new
chown 4242 /var/lib/new/data
touch -d 2020-02-02 /var/lib/new/data
{PYTHON} -c 'import os; os.setxattr("/var/lib/new/data", "trusted.mark", b"yes")'
truncate -s 8M /var/lib/new/sparse
rm -f /etc/issue
echo home > ~/home
echo kept > /var/tmp/kept
"""
SHOW = f"""
cat /etc/own /var/lib/new/hard ~/home /var/tmp/kept
readlink /var/lib/new/link
stat -c '%F %a %u %h %Y' /var/lib/new /var/lib/new/pipe
stat -c '%a %u %h %y' /var/lib/new/data
{PYTHON} -c 'import os; print(os.getxattr("/var/lib/new/data", "trusted.mark").decode())'
stat -c '%s %b' /var/lib/new/sparse
test -e /etc/issue || echo gone
"""
LAB = f"""
name: shop
time: {{drive: work}}
nodes:
  db: {{disk: {{fixed: {{read_latency: 200us, write_latency: 2ms}}, size: 64MB, mount: /srv}}}}
  whole: {{disk: {{model: nvme, size: 64MiB, mount: /}}}}
  plain: {{files: {{/etc/own: {{text: first}}, /bin/change: {{from: change, mode: 755}}}}}}
  x:
  "y":
links: [{{endpoints: [db, plain], delay: 1ms}}, whole -- plain, x -- plain, "y -- plain"]
run:
  - {{on: db, name: store, background: true, exec: [{PYTHON}, {STORE}, FULL]}}
  - {{on: whole, name: found, exec: sh -c 'cat /var/lib/mine; echo mine > /var/lib/mine; sync'}}
  - {{on: plain, name: show, exec: sh /bin/show}}
  - {{on: plain, name: change, exec: sh /bin/change, after: [show]}}
  - {{on: x, exec: sleep 4}}
"""


def test_a_saved_lab_goes_on_with_its_files_disks_and_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "change").write_text(CHANGE)
    text = LAB.replace("/bin/change: {", "/bin/show: {from: show, mode: 755}, /bin/change: {")
    (lab / "show").write_text(SHOW)
    with held_run(lab, text, "3s") as (process, out):
        for words in (["link", out, "db--plain", "set", "delay=7ms"], ["clock", out, "tdf", "2"]):
            assert dilaton(*words, env=environment()).returncode == 0
        saved = dilaton("save", out, "kept", env=environment())
        assert saved.returncode == 0, saved.stderr
        assert "power cut" in saved.stderr and "shop as at 3 s" in saved.stdout
        with Client(out) as client:
            clock = client.request(CLOCK_SHOW)
        assert (clock["virtual_s"], clock["held"], clock["steered_by"]) == (3.0, True, "")
        process.kill()
        process.wait()
    shown = json.loads(dilaton("saved", "show", "kept", env=environment()).stdout)
    assert shown["virtual_s"] == 3.0 and "time.tdf=2" in shown["settings"]
    told = (Path(shown["results"]) / "nodes/db/store.stdout").read_text()
    committed = int(re.findall(r"committed (\d+)", told)[-1])
    assert committed > 20
    for words, status in {("check", "kept"): 0, ("check", "kept", "--set", "nodes.db.disk.size=1MB"): 2}.items():
        checked = dilaton(*words, env=environment())
        assert checked.returncode == status, checked.stderr
    outcome = run_in(tmp_path, Path("kept"))
    assert outcome.status == 0, outcome.terminal
    found = outcome.stdout("db", "store")
    # One more may be there, of which nobody was told before.
    assert found.startswith((f"found {committed}\n", f"found {committed + 1}\n")), (committed, found[:100])
    assert outcome.stdout("whole", "found") == "mine\n"
    first = outcome.stdout("plain", "show").splitlines()
    assert first[:5] == ["changed", "data", "home", "kept", "nowhere"]
    assert first[5].startswith("directory 2750 0 2 ") and first[6].startswith("fifo ")
    assert first[7].startswith(f"644 {OWN} 2 2020-02-02 ") and first[8:] == ["yes", f"{8 << 20} 0", "gone"]
    assert "7 ms" in outcome.terminal and "TDF 2" in outcome.terminal
    for words, why in {
        ("run", "kept", "--machines", "2"): "this machine alone",
        ("run", "kept", "--confirm-suspect"): "dilaton: --confirm-suspect: a run of a saved lab cannot be confirmed",
        ("run", "kept", "--set", "fidelity=confirm"): "--set fidelity: a run of a saved lab cannot be confirmed",
        ("saved", "show", "none"): "no saved lab",
        ("saved", "remove", "none"): "no lab that was saved",
        ("save", str(outcome.path), "kept"): "no run is going on",
        ("save", "kept", "x", "--max-size", "1kB"): "--max-size",
    }.items():
        refused = dilaton(*words, cwd=tmp_path, env=environment())
        assert refused.returncode == 2 and why in refused.stderr, refused.stderr
    assert "kept" in dilaton("saved", "list", env=environment()).stdout
    assert dilaton("saved", "remove", "kept", env=environment()).returncode == 0
    assert not list(SavedLabs().directory.glob("trees/*"))


def test_a_database_that_is_saved_at_work_has_all_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if programs() is None:
        pytest.skip("Debian's package postgresql is not installed")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    run, lab = tmp_path / "run", ROOT / "examples" / "put-away"
    options = ("--out", run, "--hold-at", "9s", "--max-speed", "1")
    with started("run", lab, *options, stderr=subprocess.PIPE, text=True) as process:
        assert any("clock held" in line for line in process.stderr)
        assert dilaton("clock", run, "release").returncode == 0
        # With the clock running, at whatever instant.
        saved = dilaton("save", run, "kept", env=environment())
        assert saved.returncode == 0 and "power cut" not in saved.stderr, saved.stderr
        process.kill()
        process.wait()
    about = json.loads(dilaton("saved", "show", "kept", env=environment()).stdout)
    assert 9 <= about["virtual_s"] < 30
    outcome = run_in(tmp_path, Path("kept"), "--max-speed", "1000")
    assert outcome.status == 0, outcome.terminal
    before = json.loads(outcome.stdout("db", "orders"))["orders"]
    assert before > 10, "orders were placed before it was saved"
    for shop in ("bern", "lima", "oslo"):
        told = json.loads(outcome.stdout(shop, f"shop-{shop}"))
        assert told["lost"] == 0 and 20 < told["acknowledged"] <= 40, told


RUNNING = """
name: running
time: {drive: work}
nodes: {a: {}}
run: [{on: a, name: write, background: true, exec: sh -c 'while :; do head -c 20M /dev/zero > /var/z; sleep 0.1; done'}]
stop_after: 20s
"""


def test_saving_while_the_clock_runs_costs_no_virtual_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    # With the store of saved labs below the lab, which is not saved with it.
    with held_run(tmp_path, RUNNING, "1s") as (process, out):
        with Client(out) as client:
            client.request(CLOCK_TDF, tdf="20")
            client.request(CLOCK_RELEASE)
        told = list[tuple[str, int]]()
        save(SavedLabs(), out, "kept", lambda what, count: told.append((what, count)))
        assert [what for what, _ in told][-1] == "results"
        sizes = [count for what, count in told if what == "what a has written"]
        # The last of them is told some time before the end: how much more there was hangs on the host.
        assert sizes == sorted(sizes) and sizes[-1] > 0, "it says how far it is"
        with Client(out) as client:
            assert not client.request(CLOCK_SHOW)["held"], "it goes on"
            client.request(CLOCK_TDF, tdf="1/10")
        outcome = outcome_of(process, out)
    changes = outcome.record["fidelity"]["tdf_trace"]
    stood = next(change for change in changes if change["reason"] == "saved")
    went_on = next(change for change in changes if change["reason"] == "saved: done")
    assert stood["virtual_s"] == went_on["virtual_s"] and stood["host_s"] < went_on["host_s"]


IMAGED = """
name: imaged
time: {drive: event}
nodes: {a: {image: box}, b: {image: box}}
links: [a -- b]
run:
  - {on: a, name: show, exec: sh -c 'ls /srv; cat /srv/*; stat -c %u /data/own'}
  - {on: a, name: change, after: [show], exec: sh -c 'busybox rm -r /srv; busybox mkdir /srv; echo new > /srv/new'}
  - {on: b, exec: sleep 2}
"""


@needs_programs
def test_what_a_node_removed_of_its_image_stays_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    page = layer(("srv/page", b"a page of the image\n"))
    config = {"Env": ["PATH=/bin"]}
    brought = dilaton("image", "import", layout(tmp_path / "oci", [busybox(), page], config), "box", env=environment())
    assert brought.returncode == 0, brought.stderr
    lab = tmp_path / "lab"
    lab.mkdir()
    with held_run(lab, IMAGED, "1s") as (_, out):
        saved = dilaton("save", out, "kept", env=environment())
        assert saved.returncode == 0, saved.stderr
    # What it needs stays in the store, whatever becomes of the name.
    assert dilaton("image", "remove", "box", env=environment()).returncode == 0
    assert dilaton("image", "gc", env=environment()).returncode == 0
    outcome = run_in(tmp_path, Path("kept"))
    assert outcome.status == 0, outcome.terminal
    assert outcome.stdout("a", "show") == f"new\nnew\n{OWN}\n"
    assert dilaton("saved", "remove", "kept", env=environment()).returncode == 0
    assert not Store(tmp_path / "data/dilaton/images").names()


SAVES = """
import sys
from pathlib import Path
from dilaton.service.saved.save import save
from dilaton.service.saved.store import SavedLabs
save(SavedLabs(Path(sys.argv[1])), Path(sys.argv[2]), "kept", lambda *_: None)
"""
SMALL = """
name: small
nodes: {a: {disk: {model: nvme, size: 64MiB, mount: /srv}}, b: }
links: [a -- b]
run: [{on: a, exec: sleep 10}]
stop_after: 5s
"""


def test_a_kill_at_any_step_leaves_the_old_saved_lab_or_the_new_one(tmp_path: Path) -> None:
    store = SavedLabs(tmp_path / "saved")
    lab = tmp_path / "lab"
    lab.mkdir()
    with held_run(lab, SMALL, "1s") as (_, out):

        def saved(step: int) -> int:
            done = killed_at(step, tmp_path, SAVES, store.directory, out)
            assert done.returncode in (0, -signal.SIGKILL), done.stderr
            with Client(out) as client:
                clock = client.request(CLOCK_HOLD)
            assert (clock["virtual_s"], clock["held"], clock["steered_by"]) == (1.0, True, ""), step
            return done.returncode

        assert saved(10**9) == 0
        old = store.names()["kept"]
        step = 1
        while saved(step):
            assert store.names() == {"kept": old} or step > 20
            with store.reading("kept") as tree:
                assert tree is not None and (tree / RESULTS / "plan.json").exists()
            step += 1 + step // 2
        assert step > 20
        with store.reading("kept") as tree:
            assert tree is not None
        assert len(list(store.directory.glob("trees/*"))) == 1 and not list(store.directory.glob("staging/*"))
