// The verdict of a run as it stood at an instant of the past. A run writes down the verdict of its whole alone; how it stood
// before that is known to a page that was open then, and only to that.
import type { RunStatus } from "../api/types";

export type Verdict = NonNullable<RunStatus["verdict"]>;

export interface Told {
  atNs: number;
  verdict: Verdict;
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

  /** What was told last up to an instant; null: nothing was. */
  at(ns: number): Told | null {
    return this.told.findLast((one) => one.atNs <= ns) ?? null;
  }
}
