// What programs have printed, line by line, each with the instant at which it was whole, as far as that is known: a lab that
// measures outputs notes how long each was from when on (docs/measure.md). Pure.
import { placeAt, Tables } from "./samples";

export interface Line {
  /** Of virtual time; null: nobody has noted when, or not yet. */
  tNs: number | null;
  whose: string;
  isError: boolean;
  text: string;
  /** So many bytes of it are not shown. */
  more: number;
}

interface Lengths {
  tNs: number[];
  bytes: number[];
}

/** How outputs grew, by their files. */
export class Growth extends Tables {
  private found = new Map<string, Lengths>();

  get isKnown(): boolean {
    return this.found.size > 0;
  }

  of(file: string): Lengths | undefined {
    return this.found.get(file);
  }

  protected row(tNs: number, value: (column: string) => string): void {
    const file = fileOf(value("node"), value("process"), value("stream"));
    const lengths = this.found.get(file) ?? { tNs: [], bytes: [] };
    this.found.set(file, lengths);
    // A program may cut its own output; what was seen to be there was there.
    lengths.tNs.push(tNs);
    lengths.bytes.push(Math.max(Number(value("bytes")) || 0, lengths.bytes.at(-1) ?? 0));
  }
}

/** Where a run keeps what a process prints. */
export function fileOf(node: string, process: string, stream: string): string {
  return `nodes/${node}/${process}.${stream}`;
}

/** An output as far as it is kept here: the newest of it. */
export interface Output {
  file: string;
  whose: string;
  bytes: Uint8Array;
  /** Which byte of the file the first of these is. */
  begin: number;
}

/** The lines of outputs that were there at an instant, in the order in which they came; where nobody notes when they come all
 * are there, output by output. A guest notes that beside the output and writes it down a second later, so the newest lines
 * have no instant yet: they are the last ones, and came after any instant of the past. */
export function linesAt(outputs: readonly Output[], growth: Growth, untilNs: number): Line[] {
  const notedUntilNs = growth.isKnown ? untilNs : Infinity;
  const found = outputs.flatMap((output) => linesOf(output, growth.of(output.file), notedUntilNs));
  return found.sort((a, b) => orderOf(a) - orderOf(b));
}

const orderOf = ({ tNs }: Line): number => tNs ?? Number.MAX_VALUE;

function linesOf(output: Output, lengths: Lengths | undefined, untilNs: number): Line[] {
  const { bytes, begin, whose, file } = output;
  const decoder = new TextDecoder();
  const isError = file.endsWith(".stderr");
  const lines: Line[] = [];
  // Of an output whose beginning is not here the first line may be half a one.
  let from = begin ? bytes.indexOf(NEWLINE) + 1 : 0;
  while (from < bytes.length) {
    const end = bytes.indexOf(NEWLINE, from);
    const to = end < 0 ? bytes.length : end + 1;
    const tNs = lengths ? instantOf(lengths, begin + to) : null;
    if ((tNs ?? Infinity) > untilNs) break;
    const last = end < 0 ? to : end;
    const text = visible(decoder.decode(bytes.subarray(from, Math.min(last, from + LINE_BYTES_MAX))));
    const more = Math.max(0, last - from - LINE_BYTES_MAX);
    lines.push({ tNs, whose, isError, text, more });
    from = to;
  }
  return lines;
}

const NEWLINE = 10;

/** No more is shown of a line: four millions of letters took a browser 1.3 s to break into rows (ten thousand: 4 ms). */
export const LINE_BYTES_MAX = 10_000;

/** When an output had so many bytes; null: that is beyond what was noted. */
function instantOf({ tNs, bytes }: Lengths, length: number): number | null {
  return tNs[placeAt(bytes, length - 1) + 1] ?? null;
}

/** Text as it is read: without the orders for a terminal that programs put in it, and other control characters as dots. */
export function visible(text: string): string {
  return text
    .replace(/\r$/, "")
    .replace(/\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)/g, "")
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, "·");
}
