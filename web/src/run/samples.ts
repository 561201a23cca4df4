// Samples of interfaces (docs/measure.md): pieces of CSV as a run writes them → series of each interface, and what a link
// carries at an instant. A guest writes these files: rows that are none are left out. Each guest has a table of its own, with
// a header of its own, whose pieces end anywhere: what is left of a piece is kept for that guest alone.
import { Turns } from "./turns";

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

const PIECE_BYTES = 1 << 20;

/** The tables of guests, of which pieces come that end anywhere. */
export abstract class Tables {
  private tables = new Map<string, { header: string[]; rest: string }>();
  private rows = 0;

  /** Takes the next piece of a guest's table, which may end anywhere. */
  take(guest: string, piece: string): void {
    const table = this.tables.get(guest) ?? { header: [], rest: "" };
    this.tables.set(guest, table);
    const lines = (table.rest + piece).split("\n");
    table.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!table.header.length) table.header = line.split(",");
      else this.read(table.header, line.split(","));
    }
  }

  private read(header: string[], values: string[]): void {
    const value = (name: string) => values[header.indexOf(name)] ?? "";
    const tNs = Number(value("t_ns"));
    if (values.length !== header.length || !value("t_ns") || !Number.isFinite(tNs)) return;
    if (++this.rows <= ROWS_MAX) this.row(tNs, value);
  }

  /** Takes a row, of an instant, whose values are told by their columns. */
  protected abstract row(tNs: number, value: (column: string) => string): void;
}

export class Samples extends Tables {
  readonly series = new Map<string, Series>();

  protected row(tNs: number, value: (column: string) => string): void {
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

/** Reads the tables of guests as they grow, one reading at a time: who asks while one is under way is answered by one that
 * begins after it, so that no piece is taken twice and none that was there when they asked is missed. */
export class Reader<Read extends Tables = Samples> {
  private starts = new Map<string, number>();
  private decoders = new Map<string, TextDecoder>();
  private turns = new Turns();

  constructor(
    readonly samples: Read,
    /** A piece of a guest's table from a byte on, at most `PIECE_BYTES` of it; it throws where there is none. */
    private readonly piece: (guest: string, start: number) => Promise<Uint8Array>,
    private readonly taken: () => void,
  ) {}

  read(guests: readonly string[]): Promise<void> {
    return this.turns.take(() => this.readAll(guests));
  }

  private async readAll(guests: readonly string[]): Promise<void> {
    for (const guest of guests) {
      for (let length = PIECE_BYTES; length === PIECE_BYTES;) {
        const start = this.starts.get(guest) ?? 0;
        const piece = await this.piece(guest, start).catch(() => new Uint8Array());
        length = piece.length;
        if (!length) break;
        this.starts.set(guest, start + length);
        this.samples.take(guest, this.decoder(guest).decode(piece, { stream: true }));
        this.taken();
      }
    }
  }

  /** A piece may end within a character. */
  private decoder(guest: string): TextDecoder {
    const found = this.decoders.get(guest) ?? new TextDecoder();
    this.decoders.set(guest, found);
    return found;
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
