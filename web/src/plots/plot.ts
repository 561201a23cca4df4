// A plot over virtual time, behind a small adapter: uPlot draws; bands are times in which faults had their effect.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Band } from "../run/happenings";
import type { Lines } from "../run/plotting";
import { colour } from "../state/theme.svelte";
import { COLOURS, svgOf } from "./svg";

export interface Plotted extends Lines {
  unit: (value: number) => string;
  bands: Band[];
}

export class Plot {
  private plot: uPlot | null = null;
  private shown = "";
  private plotted: Plotted | null = null;

  constructor(
    private readonly holder: HTMLElement,
    private readonly looked: (tS: number | null) => void,
  ) {}

  show(plotted: Plotted): void {
    this.plotted = plotted;
    const data = [plotted.tS, ...plotted.lines.map((line) => line.values)] as uPlot.AlignedData;
    const wanted = plotted.lines.map((line) => line.label).join("\n") + document.documentElement.dataset.theme;
    if (this.plot && wanted === this.shown) {
      this.plot.setData(data, this.plot.scales["x"]!.min === this.plot.data[0]![0]);
      return;
    }
    this.plot?.destroy();
    this.shown = wanted;
    this.plot = new uPlot(this.options(plotted), data, this.holder);
  }

  resize(): void {
    this.plot?.setSize({ width: this.holder.clientWidth, height: 220 });
  }

  png(): Promise<Blob | null> {
    return new Promise((done) => (this.plot ? this.plot.ctx.canvas.toBlob(done) : done(null)));
  }

  /** What is seen, as a drawing of its own; empty: there is none yet. */
  svg(title: string): string {
    const { min, max } = this.plot?.scales["x"] ?? {};
    return this.plotted && min != null && max != null ? svgOf(title, this.plotted, [min, max]) : "";
  }

  close(): void {
    this.plot?.destroy();
  }

  private options(plotted: Plotted): uPlot.Options {
    const text = colour("muted");
    const axis = { stroke: text, grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") } };
    return {
      width: this.holder.clientWidth,
      height: 220,
      scales: { x: { time: false } },
      cursor: { drag: { x: true, y: false } },
      axes: [
        { ...axis, values: (_, values) => values.map((value) => `${+value.toFixed(6)} s`) },
        { ...axis, size: 80, values: (_, values) => values.map((value) => plotted.unit(value)) },
      ],
      series: [
        {
          label: "t",
          value: (_, value) => (value === null || value === undefined ? "" : `${value.toFixed(3)} s`),
        },
        ...plotted.lines.map((line, n) => ({
          label: line.label,
          stroke: COLOURS[n % COLOURS.length],
          width: 1.5,
          points: { show: false },
          value: (_: uPlot, value: number | null) =>
            value === null || value === undefined ? "–" : plotted.unit(value),
        })),
      ],
      hooks: {
        drawClear: [(plot) => this.drawBands(plot)],
        ready: [
          (plot) =>
            plot.over.addEventListener("dblclick", () =>
              this.looked(plot.cursor.left === undefined ? null : plot.posToVal(plot.cursor.left, "x")),
            ),
        ],
      },
    };
  }

  private drawBands(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    for (const band of this.plotted?.bands ?? []) {
      const left = Math.max(bbox.left, plot.valToPos(band.beginNs / 1e9, "x", true));
      const endS = band.endNs === null ? plot.scales["x"]!.max! : band.endNs / 1e9;
      const right = Math.min(bbox.left + bbox.width, plot.valToPos(endS, "x", true));
      if (right < left) continue;
      ctx.fillStyle = colour("warn");
      ctx.globalAlpha = right > left ? 0.16 : 0.7;
      ctx.fillRect(left, bbox.top, Math.max(right - left, devicePixelRatio), bbox.height);
      // What it was is written where there is room for it.
      if (ctx.measureText(band.what).width + 8 > right - left) continue;
      ctx.globalAlpha = 1;
      ctx.fillText(band.what, left + 4, bbox.top + 12 * devicePixelRatio);
    }
    ctx.restore();
  }
}
