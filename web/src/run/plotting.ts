// Samples → lines of plots, and plots → CSV. Pure.
import { rates, type Samples, type Series } from "./samples";

export type Quantity = "rate" | "queue" | "loss";

export interface Lines {
  tS: number[];
  lines: { label: string; values: (number | null)[] }[];
}

/** One quantity of some interfaces, by their keys, on common instants. Interfaces of a guest are sampled together, those of
 * several guests at instants of their own: where an interface has no sample there is a gap. */
export function linesOf(samples: Samples, keys: readonly string[], quantity: Quantity, untilNs: number): Lines {
  const found = keys.map((key) => samples.series.get(key)).filter((series): series is Series => series !== undefined);
  const instants = [...new Set(found.flatMap((series) => series.tNs))]
    .filter((t) => t <= untilNs)
    .sort((a, b) => a - b);
  return {
    tS: instants.map((t) => t / 1e9),
    lines: found.map((series) => {
      const values = valuesOf(series, quantity);
      const byInstant = new Map(series.tNs.map((t, n) => [t, values[n] ?? null]));
      return {
        label: `${series.node}:${series.interface}`,
        values: instants.map((t) => byInstant.get(t) ?? null),
      };
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
