"""Draws the figure of the README from a run of the lab beside this file: `python figure.py RUN_DIR FILE.svg`."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt

import dilaton
from dilaton.report.style import BLUE, ORANGE, WIDTH_IN, applied


def main(run_dir: str, target: str) -> None:
    """Round-trip time of the upload and the router's queue, over virtual time."""
    run = dilaton.load(run_dir)
    upload = run.tcp.query("node == 'home' and bytes_acked > 100000")
    queue = run.interfaces.query("node == 'router' and interface == 'eth1'")
    with applied():
        figure, (above, below) = plt.subplots(2, 1, figsize=(WIDTH_IN, 3.2), sharex=True)
        above.semilogy(upload.t_s, upload.rtt_us / 1e6, color=BLUE)
        above.set_ylabel("round-trip time (s)")
        below.plot(queue.t_s, queue.queue_packets, color=ORANGE)
        below.set_ylabel("router's queue (packets)")
        below.set_xlabel("virtual time (s)")
        for where in (above, below):
            where.axvline(60, color="#555555", linestyle=":")
        above.annotate("fifo, 1000 packets", (58, 0.03), ha="right", fontsize=7)
        above.annotate("fq_codel", (75, 0.3), fontsize=7)
        figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:3])
