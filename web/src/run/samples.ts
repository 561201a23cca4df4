// Samples of interfaces (docs/measure.md): pieces of CSV as a run writes them → series of each interface, and what a link
// carries at an instant. Pure. A guest writes these files: rows that are none are left out.

export interface Series {
  node: string;
  interface: string;
  tNs: number[];
  /** Counters and levels by their columns, as long as `tNs`. */
  columns: Record<string, number[]>;
}

const NUMBERS = [
  "tx_bytes",
  "rx_bytes",
  "tx_packets",
  "queue_bytes",
  "queue_packets",
  "queue_drops",
  "lost_packets",
] as const;

const ROWS_MAX = 2_000_000;

export class Samples {
  readonly series = new Map<string, Series>();
  private header: string[] = [];
  private rest = "";
  private rows = 0;

  /** Takes the next piece of a table, which may end anywhere. */
  take(piece: string): void {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!this.header.length) this.header = line.split(",");
      else this.row(line.split(","));
    }
  }

  private row(values: string[]): void {
    const value = (name: string) => values[this.header.indexOf(name)] ?? "";
    const tNs = Number(value("t_ns"));
    if (values.length !== this.header.length || !value("t_ns") || !Number.isFinite(tNs)) return;
    if (++this.rows > ROWS_MAX) return;
    const key = `${value("node")}:${value("interface")}`;
    let series = this.series.get(key);
    if (!series) {
      const columns = Object.fromEntries(NUMBERS.map((name) => [name, []]));
      series = { node: value("node"), interface: value("interface"), tNs: [], columns };
      this.series.set(key, series);
    }
    const last = series.tNs.at(-1);
    if (last !== undefined && tNs <= last) return;
    series.tNs.push(tNs);
    for (const name of NUMBERS) series.columns[name]!.push(Number(value(name)) || 0);
  }
}

/** The place of the last sample until an instant; -1: there is none yet. */
export function placeAt(tNs: readonly number[], untilNs: number): number {
  let low = 0;
  let high = tNs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tNs[middle]! <= untilNs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** How fast a counter grows, per second of virtual time, in the sample period that ends at each sample. */
export function rates(series: Series, counter: string, scale = 1): (number | null)[] {
  const values = series.columns[counter] ?? [];
  return series.tNs.map((tNs, place) => {
    if (place === 0) return null;
    const elapsedS = (tNs - series.tNs[place - 1]!) / 1e9;
    return ((values[place]! - values[place - 1]!) * scale) / elapsedS;
  });
}

export interface Carried {
  bitPerS: number;
  queueBytes: number;
  dropPerS: number;
}

/** What an interface sends at an instant: of the last sample until then. */
export function carriedAt(series: Series | undefined, untilNs: number): Carried | null {
  if (!series) return null;
  const place = placeAt(series.tNs, untilNs);
  if (place < 1) return null;
  const elapsedS = (series.tNs[place]! - series.tNs[place - 1]!) / 1e9;
  const grown = (name: string) => series.columns[name]![place]! - series.columns[name]![place - 1]!;
  return {
    bitPerS: (grown("tx_bytes") * 8) / elapsedS,
    queueBytes: series.columns["queue_bytes"]![place]!,
    dropPerS: (grown("queue_drops") + grown("lost_packets")) / elapsedS,
  };
}
