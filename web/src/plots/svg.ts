// A plot as a drawing of its own, for papers and slides: black on white, with axes, a legend and the times of faults. Pure.
import type { Band } from "../run/happenings";
import type { Lines } from "../run/plotting";

export const COLOURS = ["#3f7fc4", "#cf5a17", "#2f8f5b", "#9a4fb5", "#b98a1b", "#138a92", "#b3261e", "#6b7280"];

const WIDTH = 760;
const PLOT = { left: 90, right: 740, top: 40, bottom: 320 };
const LEGEND_LINE = 18;

interface Drawn extends Lines {
  unit: (value: number) => string;
  bands: readonly Band[];
}

/** Round numbers from `low` to `high`, some five of them. */
export function ticks(low: number, high: number): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10);
  const found: number[] = [];
  for (let n = Math.ceil(low / step); n * step <= high * (1 + 1e-12); n++) found.push(n * step);
  return found;
}

function escaped(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  // XML has no way to write most control characters.
  return text
    .replace(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"]/g, (one) => entities[one]!);
}

/** The lines from one instant to another, in seconds. */
export function svgOf(title: string, { tS, lines, unit, bands }: Drawn, [beginS, endS]: [number, number]): string {
  const seen = (n: number) => tS[n]! >= beginS && tS[n]! <= endS;
  const values = lines.flatMap((line) => line.values.filter((value, n) => typeof value === "number" && seen(n)));
  const most = values.reduce<number>((highest, value) => Math.max(highest, value ?? 0), 0) || 1;
  const x = (s: number) => PLOT.left + ((s - beginS) / (endS - beginS || 1)) * (PLOT.right - PLOT.left);
  const y = (value: number) => PLOT.bottom - (value / most) * (PLOT.bottom - PLOT.top);
  const place = (n: number) => n.toFixed(1);
  const height = PLOT.bottom + 50 + LEGEND_LINE * lines.length;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="#fff"/><text x="${PLOT.left}" y="22" font-size="15">${escaped(title)}</text>`,
  ];
  for (const band of bands) {
    const [from, to] = [Math.max(band.beginNs / 1e9, beginS), Math.min((band.endNs ?? Infinity) / 1e9, endS)];
    if (to < from) continue;
    const box = `x="${place(x(from))}" y="${PLOT.top}" width="${place(Math.max(x(to) - x(from), 1))}"`;
    parts.push(
      `<rect ${box} height="${PLOT.bottom - PLOT.top}" fill="#f2c14e" fill-opacity="0.35">`,
      `<title>${escaped(band.what)}</title></rect>`,
    );
  }
  for (const value of ticks(0, most)) {
    const at = place(y(value));
    parts.push(
      `<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${at}" y2="${at}" stroke="#ddd"/>`,
      `<text x="${PLOT.left - 6}" y="${at}" text-anchor="end" dominant-baseline="middle">${escaped(unit(value))}</text>`,
    );
  }
  for (const s of ticks(beginS, endS))
    parts.push(`<text x="${place(x(s))}" y="${PLOT.bottom + 18}" text-anchor="middle">${+s.toPrecision(9)} s</text>`);
  parts.push(`<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${PLOT.bottom}" y2="${PLOT.bottom}" stroke="#333"/>`);
  lines.forEach((line, n) => {
    const colour = COLOURS[n % COLOURS.length]!;
    let path = "";
    let isDrawn = false;
    line.values.forEach((value, at) => {
      // Where there is no sample the line goes on; where there is nothing to draw it ends.
      if (value === undefined || !seen(at)) return;
      if (value !== null) path += `${isDrawn ? "L" : "M"}${place(x(tS[at]!))} ${place(y(value))}`;
      isDrawn = value !== null;
    });
    const below = PLOT.bottom + 44 + n * LEGEND_LINE;
    parts.push(
      `<path d="${path}" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
      `<line x1="${PLOT.left}" x2="${PLOT.left + 20}" y1="${below - 4}" y2="${below - 4}" stroke="${colour}" stroke-width="3"/>`,
      `<text x="${PLOT.left + 28}" y="${below}">${escaped(line.label)}</text>`,
    );
  });
  return `${[...parts, "</svg>"].join("\n")}\n`;
}
