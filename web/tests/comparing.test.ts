import { expect, test } from "vitest";
import { csvOfRows, groupsOf, meanOf, metricsOf, rowsOf, student, type Compared } from "../src/run/comparing";
import type { RunRecord } from "../src/run/record";
import { settingsOf, valuesOf } from "../src/run/sweeping";

function run(settings: string[], throughput: number | null, version = 1): Compared {
  const result =
    throughput === null ? null : { throughput, rtt: { avg: 0.02 }, own: { score: { value: 3, unit: "1" } } };
  const record = { processes: [{ name: "bulk", result }] } as unknown as RunRecord;
  return { run: settings.join(), number: 1, name: "lab", version, settings, record };
}

test("a mean has the interval of Student's t, and of one value none", () => {
  // By hand: 10, 12, 14 have the mean 12 and the standard error 2 / sqrt(3); t(2) is 4.303.
  const found = meanOf([10, 12, 14])!;
  expect(found.mean).toBe(12);
  expect(found.half).toBeCloseTo((4.303 * 2) / Math.sqrt(3), 6);
  expect(meanOf([5])).toEqual({ mean: 5, half: null, count: 1 });
  expect(meanOf([])).toBeNull();
  // Tables of the distribution have 2.042, 2.021, 1.984 and 1.962.
  expect([30, 40, 100, 1000].map((freedom) => +student(freedom).toFixed(3))).toEqual([2.042, 2.021, 1.984, 1.962]);
});

test("runs that differ in their seeds alone are repeats of one another", () => {
  const groups = groupsOf([
    run(["a.rate=1Mbit", "seed=1"], 10),
    run(["a.rate=2Mbit", "seed=1"], 20),
    run(["seed=2", "a.rate=1Mbit"], 12),
    run(["a.rate=1Mbit"], 20, 2),
  ]);
  expect(groups.map((group) => [group.label, group.runs.length])).toEqual([
    ["v1 · a.rate=1Mbit", 2],
    ["v1 · a.rate=2Mbit", 1],
    ["v2 · a.rate=1Mbit", 1],
  ]);
});

test("groups are told by as much of a path as tells fields from each other", () => {
  const told = (...settings: string[][]) => groupsOf(settings.map((one) => run(one, 1))).map((group) => group.short);
  expect(told(["nodes.a.sysctls.net.ipv4.tcp_congestion_control=bbr", "seed=1"])).toEqual([
    "tcp_congestion_control=bbr",
  ]);
  expect(told(["links.0.rate=1Mbit", "links.1.rate=a=b"], ["links.0.loss=1%"])).toEqual([
    "0.rate=1Mbit, 1.rate=a=b",
    "loss=1%",
  ]);
  expect(told(["rate=1", "a.rate=2"])).toEqual(["rate=1, a.rate=2"]);
});

test("metrics are those that programs have measured; a run without results has none", () => {
  const groups = groupsOf([run(["x=1"], 10), run(["x=2"], null)]);
  const rows = rowsOf(groups);
  expect(rows.map((row) => row.metric)).toEqual(["bulk throughput", "bulk rtt avg", "bulk score"]);
  expect(rows[0]).toEqual({
    metric: "bulk throughput",
    unit: "bit/s",
    means: [{ mean: 10, half: null, count: 1 }, null],
  });
  expect(csvOfRows(groups, rows).split("\n")[1]).toBe("bulk throughput,bit/s,x=1,10,,1");
  const hostile = { processes: [{ name: "p", result: { throughput: "1", rtt: [1], own: { a: null } } }] };
  expect(metricsOf(hostile as unknown as RunRecord).map((one) => one.name)).toEqual(["p rtt 0"]);
});

test("a sweep has every combination, each as often as wanted with a seed of its own", () => {
  expect(valuesOf(' 1Mbit, {a: 1, b: 2} ,"x,y",')).toEqual(["1Mbit", "{a: 1, b: 2}", '"x,y"']);
  const fields = [
    { path: "links.0.rate", values: "1Mbit, 2Mbit" },
    { path: "time.tdf", values: "4" },
    { path: " ", values: "ignored" },
  ];
  expect(settingsOf(fields, 1)).toEqual([
    ["links.0.rate=1Mbit", "time.tdf=4"],
    ["links.0.rate=2Mbit", "time.tdf=4"],
  ]);
  expect(settingsOf(fields, 2).map((one) => one.at(-1))).toEqual(["seed=1", "seed=2", "seed=1", "seed=2"]);
  expect(settingsOf([], 1)).toEqual([[]]);
  expect(settingsOf([{ path: "a", values: "" }], 3)).toEqual([]);
});
