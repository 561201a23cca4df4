import { expect, test } from "vitest";
import { resultWords } from "../src/run/results";

test("what a program has measured is told in a line, what the lab itself has it measure too", () => {
  expect(resultWords(null)).toBe("");
  expect(resultWords({ throughput: 19e6, rtt: { avg: 0.0400123 }, loss: 0.001, retransmits: 3 })).toBe(
    "19.0 Mbit/s, RTT 40.01 ms, 0.10 % loss, 3 retransmitted",
  );
  expect(resultWords({ own: { outage: { value: 3.04, unit: "s" }, lost: { value: 162, unit: "1" } } })).toBe(
    "outage 3.040 s, lost 162",
  );
  expect(resultWords({ own: { a: null, b: { value: "1" } }, throughput: "x" })).toBe("");
});
