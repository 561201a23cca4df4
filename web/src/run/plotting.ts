// Samples → lines of plots, and plots → CSV. Pure.
import { rate, size } from "./units";
import { rates, type Samples, type Series } from "./samples";

export type Quantity = "rate" | "queue" | "loss";

/** What is plotted, and how its values are written. */
export const QUANTITIES: { id: Quantity; unit: (value: number) => string }[] = [
  { id: "rate", unit: rate },
  { id: "queue", unit: size },
  { id: "loss", unit: (value) => `${value.toFixed(0)}/s` },
];

export interface Lines {
  tS: number[];
  /** Undefined: there is no sample at that instant, and a line goes on to its next one. Null: there is nothing to draw. */
  lines: { label: string; values: (number | null | undefined)[] }[];
}

export interface Labelled {
  label: string;
  series: Series;
}

/** Interfaces of a run, by their keys, as what is to be plotted. */
export function labelled(samples: Samples, keys: readonly string[]): Labelled[] {
  return keys.flatMap((key) => {
    const series = samples.series.get(key);
    return series ? [{ label: `${series.node}:${series.interface}`, series }] : [];
  });
}

/** Interfaces by how much they have sent, most first. */
export function busiest(samples: Samples, keys: readonly string[]): string[] {
  const sent = (key: string) => samples.series.get(key)?.columns["tx_bytes"]?.at(-1) ?? 0;
  return [...keys].sort((a, b) => sent(b) - sent(a));
}

/** One quantity of some interfaces, of one run or of several, on common instants. Interfaces of a guest are sampled
 * together, those of several guests and runs at instants of their own. */
export function linesOf(chosen: readonly Labelled[], quantity: Quantity, untilNs: number): Lines {
  const instants = [...new Set(chosen.flatMap(({ series }) => series.tNs))]
    .filter((t) => t <= untilNs)
    .sort((a, b) => a - b);
  return {
    tS: instants.map((t) => t / 1e9),
    lines: chosen.map(({ label, series }) => {
      const values = valuesOf(series, quantity);
      const byInstant = new Map(series.tNs.map((t, n) => [t, values[n]]));
      return { label, values: instants.map((t) => byInstant.get(t)) };
    }),
  };
}

function valuesOf(series: Series, quantity: Quantity): (number | null)[] {
  switch (quantity) {
    case "rate":
      return rates(series, "tx_bytes", 8);
    case "queue":
      return series.columns["queue_bytes"] ?? [];
    case "loss": {
      const dropped = rates(series, "queue_drops");
      const lost = rates(series, "lost_packets");
      return dropped.map((value, n) => (value === null ? null : value + (lost[n] ?? 0)));
    }
  }
}

export function csvOf({ tS, lines }: Lines): string {
  const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const header = ["t_s", ...lines.map((line) => quoted(line.label))].join(",");
  const rows = tS.map((t, n) => [t, ...lines.map((line) => line.values[n] ?? "")].join(","));
  return `${[header, ...rows].join("\n")}\n`;
}
