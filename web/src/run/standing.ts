// The verdict of a run as it stood at an instant of the past. A run writes that down from time to time; a page that is open
// hears of it more often, until the run is over.
import type { RunStatus } from "../api/types";

export type Verdict = NonNullable<RunStatus["verdict"]>;

export interface Told {
  atNs: number;
  verdict: Verdict;
}

/** From which instant on a run is judged: before, programs that start keep it busy (as `execute.py` has it). */
export const JUDGED_FROM_S = 1;

/** Why there is no verdict. */
export type Unjudged = "noVerdict" | "notBegun" | "firstSecond" | "notTold";

/** Why a run has none; `virtualS`: how far it has come, null: its clock has not been released, as far as is known. */
export function unjudged(isOver: boolean, virtualS: number | null): Unjudged {
  if (isOver) return "noVerdict";
  if (virtualS === null) return "notBegun";
  return virtualS < JUDGED_FROM_S ? "firstSecond" : "notTold";
}

const KEPT_MAX = 2000;

export class Verdicts {
  private told: Told[] = [];

  constructor(private readonly most = KEPT_MAX) {}

  /** Notes what was told, in the order of virtual time; of a long run every second one is given up whenever there are too many. */
  note(atNs: number, verdict: Verdict): void {
    if (this.told.length && atNs <= this.told.at(-1)!.atNs) return;
    if (this.told.length >= this.most) this.told = this.told.filter((_, n) => n % 2 === 0);
    this.told.push({ atNs, verdict });
  }

  /** Takes what the run has written down, in lines of JSON, beside what was heard; a line that is none is passed over. */
  read(lines: string): void {
    const heard = this.told;
    const written = lines.split("\n").flatMap(toldIn);
    this.told = [];
    for (const { atNs, verdict } of [...heard, ...written].sort((a, b) => a.atNs - b.atNs)) this.note(atNs, verdict);
  }

  /** What was told last up to an instant; null: nothing was. */
  at(ns: number): Told | null {
    return this.told.findLast((one) => one.atNs <= ns) ?? null;
  }
}

function toldIn(line: string): Told[] {
  try {
    const { at_ns: atNs, verdict } = JSON.parse(line);
    return typeof atNs === "number" && Array.isArray(verdict.reasons) ? [{ atNs, verdict }] : [];
  } catch {
    return [];
  }
}
