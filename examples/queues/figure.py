"""Draws the figure of the README from a run of the lab beside this file: `python figure.py RUN_DIR FILE.svg`."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt

import dilaton
from dilaton.report.figures.distributions import draw_ecdf
from dilaton.report.style import COLOURS, WIDTH_IN, applied

DISCIPLINES = ("fifo", "red", "pie", "codel", "fq-codel")
RATE_BIT_PER_S = 10e6
BEGIN_S = 5.0
"""When slow start is over."""


def main(run_dir: str, target: str) -> None:
    """What a packet that arrives waits, over virtual time, and its distribution; prints a table."""
    run = dilaton.load(run_dir)
    assert run.plan
    towards = {link.ends[1].node: link.ends[0].interface for link in run.plan.links}
    with applied():
        figure, (series, shares) = plt.subplots(1, 2, figsize=(WIDTH_IN, 2.6))
        print("| discipline | median, ms | 90 % | 99 % | most | drops |\n| --- | --- | --- | --- | --- | --- |")
        for name, colour in zip(DISCIPLINES, COLOURS, strict=False):
            samples = run.interfaces.query(f"node == 'a' and interface == '{towards[name]}'")
            wait_s = samples.queue_bytes * 8 / RATE_BIT_PER_S
            steady = wait_s[samples.t_s.between(BEGIN_S, 20.0)]
            series.semilogy(samples.t_s, wait_s.clip(lower=1e-4) * 1e3, color=colour, linewidth=0.6)
            draw_ecdf(shares, steady * 1e3, label=name, color=colour)
            middle, high, highest = (steady.quantile(share) * 1e3 for share in (0.5, 0.9, 0.99))
            drops = samples.queue_drops.max()
            print(f"| {name} | {middle:.1f} | {high:.1f} | {highest:.1f} | {steady.max() * 1e3:.1f} | {drops:.0f} |")
        series.set_xlabel("virtual time (s)")
        series.set_ylabel("waiting in the queue (ms)")
        shares.set_xscale("log")
        shares.set_xlim(0.5, 300)
        shares.set_xlabel("waiting in the queue (ms)")
        shares.set_ylabel("share of samples")
        figure.legend(*shares.get_legend_handles_labels(), loc="outside lower center", ncols=len(DISCIPLINES))
        figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:3])
