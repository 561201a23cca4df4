// How a run stood at an instant of the past: its verdict, and what its guests had done by then. A run writes that down from
// time to time; a page that is open hears of it more often, until the run is over.
import type { RunStatus } from "../api/types";
import { NOTHING, RECENT_HOST_S, type Look } from "./load";

export type Verdict = NonNullable<RunStatus["verdict"]>;

export interface Told {
  atNs: number;
  verdict: Verdict;
}

/** As `Told`, also before there is a verdict, and with what had been counted, where that is known. */
export interface Stood {
  atNs: number;
  verdict: Verdict | null;
  look: Look | null;
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

export class Standings {
  private told: Stood[] = [];

  constructor(private readonly most = KEPT_MAX) {}

  /** Notes what was told, in the order of virtual time; of a long run every second one is given up whenever there are too many. */
  note(stood: Stood): void {
    if (this.told.length && stood.atNs <= this.told.at(-1)!.atNs) return;
    if (this.told.length >= this.most) this.told = this.told.filter((_, n) => n % 2 === 0);
    this.told.push(stood);
  }

  /** Takes what the run has written down, in lines of JSON, beside what was heard; a line that is none is passed over. */
  read(lines: string): void {
    const heard = this.told;
    const written = lines.split("\n").flatMap(stoodIn);
    this.told = [];
    for (const stood of [...heard, ...written].sort((a, b) => a.atNs - b.atNs)) this.note(stood);
  }

  /** The verdict that was told last up to an instant; null: none was. */
  verdictAt(ns: number): Told | null {
    const found = this.told.findLast((one) => one.verdict && one.atNs <= ns);
    return found?.verdict ? { atNs: found.atNs, verdict: found.verdict } : null;
  }

  /** What had been counted by an instant, and a while before; null: that was not told. */
  looksAt(ns: number): readonly [before: Look, after: Look] | null {
    const looks = this.told.flatMap(({ atNs, look }) => (look && atNs <= ns ? [look] : []));
    const after = looks.at(-1);
    if (!after) return null;
    const before = looks.findLast((look) => look.hostS <= after.hostS - RECENT_HOST_S);
    return [before ?? NOTHING, after];
  }
}

function stoodIn(line: string): Stood[] {
  try {
    const { at_ns: atNs, host_s: hostS, verdict, guests } = JSON.parse(line);
    if (typeof atNs !== "number" || !(verdict === null || Array.isArray(verdict.reasons))) return [];
    const isCounted = typeof hostS === "number" && Array.isArray(guests);
    return [{ atNs, verdict, look: isCounted ? { hostS, virtualS: atNs / 1e9, guests } : null }];
  } catch {
    return [];
  }
}
