import { expect, test } from "vitest";
import { Standings, unjudged, type Verdict } from "../src/run/standing";

const verdict = (level: string) => ({ level, reasons: [] }) as unknown as Verdict;

test("the verdict of an instant is the one that was told last up to it", () => {
  const told = new Standings();
  expect(told.verdictAt(5)).toBe(null);
  told.note({ atNs: 10, verdict: verdict("valid"), look: null });
  told.note({ atNs: 20, verdict: verdict("suspect"), look: null });
  // While a clock is held the same instant is told again, and what was told of it stays.
  told.note({ atNs: 20, verdict: verdict("invalid"), look: null });
  expect(told.verdictAt(9)).toBe(null);
  expect(told.verdictAt(10)).toEqual({ atNs: 10, verdict: verdict("valid") });
  expect(told.verdictAt(19.9)?.verdict.level).toBe("valid");
  expect(told.verdictAt(Infinity)).toEqual({ atNs: 20, verdict: verdict("suspect") });
});

test("a long run keeps fewer of them, and the first and the last all the same", () => {
  const told = new Standings(8);
  for (let ns = 1; ns <= 1000; ns++) told.note({ atNs: ns, verdict: verdict(String(ns)), look: null });
  expect(told.verdictAt(1)?.verdict.level).toBe("1");
  expect(told.verdictAt(1000)?.verdict.level).toBe("1000");
  const kept = new Set(Array.from({ length: 1000 }, (_, n) => told.verdictAt(n + 1)!.atNs));
  expect(kept.size).toBeLessThanOrEqual(8);
});

test("what a run has written down is taken beside what was heard, and what is damaged is passed over", () => {
  const told = new Standings();
  told.note({ atNs: 20, verdict: verdict("suspect"), look: null });
  const rows = [10, 30].map((at_ns) => JSON.stringify({ at_ns, verdict: verdict("valid") }));
  told.read([...rows, "", "{", "null", '{"at_ns": 15}', '{"at_ns": "x", "verdict": {"reasons": []}}'].join("\n"));
  expect([10, 20, 30].map((ns) => told.verdictAt(ns)?.verdict.level)).toEqual(["valid", "suspect", "valid"]);
  expect(told.verdictAt(16)?.atNs).toBe(10);
});

test("what guests had done by an instant is told of the time shortly before it", () => {
  const row = (at_s: number, busy_s: number) =>
    JSON.stringify({ at_ns: at_s * 1e9, host_s: 2 * at_s, verdict: null, guests: [{ name: "g", busy_s }] });
  const told = new Standings();
  told.read([row(0.5, 0.4), row(1, 0.5), row(4, 2), row(5, 2.25)].join("\n"));
  expect(told.verdictAt(Infinity)).toBe(null);
  expect(told.looksAt(0.4e9)).toBe(null);
  const seen = (ns: number) =>
    told.looksAt(ns)!.map(({ hostS, virtualS, guests }) => [hostS, virtualS, guests[0]?.busy_s]);
  // Nothing is known of four seconds before: since the begin.
  expect(seen(1e9)).toEqual([
    [0, 0, undefined],
    [2, 1, 0.5],
  ]);
  expect(seen(4.5e9)).toEqual([
    [2, 1, 0.5],
    [8, 4, 2],
  ]);
  expect(seen(9e9)).toEqual([
    [2, 1, 0.5],
    [10, 5, 2.25],
  ]);
  // A run of before says nothing of its guests.
  told.read('{"at_ns": 20e9, "verdict": {"level": "valid", "reasons": []}}');
  expect(told.looksAt(30e9)![1].virtualS).toBe(5);
});

test("why a run has no verdict is told by how far it has come", () => {
  expect(unjudged(false, null)).toBe("notBegun");
  expect(unjudged(false, 0)).toBe("firstSecond");
  expect(unjudged(false, 0.999)).toBe("firstSecond");
  expect(unjudged(false, 1)).toBe("notTold");
  expect(unjudged(true, 12)).toBe("noVerdict");
});
