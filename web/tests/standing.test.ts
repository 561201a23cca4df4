import { expect, test } from "vitest";
import { unjudged, Verdicts, type Verdict } from "../src/run/standing";

const verdict = (level: string) => ({ level, reasons: [] }) as unknown as Verdict;

test("the verdict of an instant is the one that was told last up to it", () => {
  const told = new Verdicts();
  expect(told.at(5)).toBe(null);
  told.note(10, verdict("valid"));
  told.note(20, verdict("suspect"));
  // While a clock is held the same instant is told again, and what was told of it stays.
  told.note(20, verdict("invalid"));
  expect(told.at(9)).toBe(null);
  expect(told.at(10)).toEqual({ atNs: 10, verdict: verdict("valid") });
  expect(told.at(19.9)?.verdict.level).toBe("valid");
  expect(told.at(Infinity)).toEqual({ atNs: 20, verdict: verdict("suspect") });
});

test("a long run keeps fewer of them, and the first and the last all the same", () => {
  const told = new Verdicts(8);
  for (let ns = 1; ns <= 1000; ns++) told.note(ns, verdict(String(ns)));
  expect(told.at(1)?.verdict.level).toBe("1");
  expect(told.at(1000)?.verdict.level).toBe("1000");
  const kept = new Set(Array.from({ length: 1000 }, (_, n) => told.at(n + 1)!.atNs));
  expect(kept.size).toBeLessThanOrEqual(8);
});

test("what a run has written down is taken beside what was heard, and what is damaged is passed over", () => {
  const told = new Verdicts();
  told.note(20, verdict("suspect"));
  const rows = [10, 30].map((at_ns) => JSON.stringify({ at_ns, verdict: verdict("valid") }));
  told.read([...rows, "", "{", "null", '{"at_ns": 15}', '{"at_ns": "x", "verdict": {"reasons": []}}'].join("\n"));
  expect([10, 20, 30].map((ns) => told.at(ns)?.verdict.level)).toEqual(["valid", "suspect", "valid"]);
  expect(told.at(16)?.atNs).toBe(10);
});

test("why a run has no verdict is told by how far it has come", () => {
  expect(unjudged(false, null)).toBe("notBegun");
  expect(unjudged(false, 0)).toBe("firstSecond");
  expect(unjudged(false, 0.999)).toBe("firstSecond");
  expect(unjudged(false, 1)).toBe("notTold");
  expect(unjudged(true, 12)).toBe("noVerdict");
});
