"""What reports cost, in host seconds and memory, and whether a browser shows them without an error.

    .venv/bin/python benches/report.py OUT [MILLIONS]

Two runs are made in OUT, unless they are there: `examples/bufferbloat`, without captures, and one TCP flow over a
link that only the guest's CPU limits, of which about so many million packets (10) are captured at one end: a minute
or two, 1.3 GB. Where there is Chromium each report is opened at two widths; shown is how many lines its console says,
how wide the page is, which should be no wider than the window, and how many figures are wider than the page.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path

import dilaton

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
WIDTHS = (1280, 400)

BYTES_PER_PACKET = 1430
"""Of data, which a segment has 1,448 of: a receiver that has much to do acknowledges many at once."""

LAB = """
name: transfer
time: {{drive: work, tdf: 10}}
nodes: {{a: {{}}, b: {{}}}}
links: ["a:eth0 -- b:eth0"]
run:
  - {{on: b, name: server, exec: iperf3 -s, ready: {{tcp: 5201}}, background: true}}
  - {{on: a, name: bulk, exec: iperf3 -c b -n {bytes} -J, after: server}}
measure: {{interfaces: 100ms, tcp: 100ms, capture: [{{interface: "a:eth0", snaplen: 96}}]}}
"""


def execute(*arguments: str | Path) -> tuple[float, float]:
    """Executes a command; returns its host seconds, and the most memory that it had in GB."""
    begin_s = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "dilaton", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"dilaton {arguments[0]} failed")
    return time.monotonic() - begin_s, usage.ru_maxrss * 1024 / 1e9


def look(page: Path, width: int) -> tuple[int, int, int]:
    """Opens a page in a browser at that width.

    Returns:
        How many lines its console says, how wide the page is, and how many of its figures are wider than that.
    """
    with tempfile.TemporaryDirectory() as name:
        probe = Path(name) / "page.html"
        # In a frame, since Chromium's windows have a least width.
        told = (
            "let page = this.contentDocument.documentElement, wide = page.scrollWidth;"
            "let cut = [...page.querySelectorAll('svg')].filter(each => each.getBoundingClientRect().right > wide);"
            "document.title = wide + ' ' + cut.length"
        )
        frame = f'<iframe width={width} height=1000 frameborder=0 onload="{told}" srcdoc="{escape(page.read_text())}">'
        probe.write_text(f"<meta charset=utf-8><title></title>{frame}</iframe>")
        command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--enable-logging=stderr"]
        command += [f"--user-data-dir={name}/profile", "--window-size=1400,1000", "--dump-dom", probe.as_uri()]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r"<title>(\d+) (\d+)</title>", done.stdout)
    assert found, "the page has no title"
    return done.stderr.count("CONSOLE"), int(found[1]), int(found[2])


def main() -> None:
    """Prints the table."""
    out = Path(sys.argv[1])
    millions = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    out.mkdir(parents=True, exist_ok=True)
    lab = out / "transfer.yaml"
    lab.write_text(LAB.format(bytes=int(millions * 1e6 * BYTES_PER_PACKET)))
    print("| run | packets captured | report, s | GB | console at 1280 and 400 | width there | figures cut off |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, source in (("bufferbloat", EXAMPLES / "bufferbloat"), ("transfer", lab)):
        run = out / name
        if not run.exists():
            execute("run", source, "--out", run)
        seconds, gigabytes = execute("report", run)
        loaded = dilaton.load(run)
        packets = sum(len(loaded.packets(capture)) for capture in loaded.captures)
        seen = [look(run / "report.html", width) for width in WIDTHS] if shutil.which("chromium") else []
        columns = " | ".join(", ".join(str(each[place]) for each in seen) for place in (0, 1, 2))
        print(f"| {name} | {packets} | {seconds:.1f} | {gigabytes:.2f} | {columns} |", flush=True)


if __name__ == "__main__":
    main()
