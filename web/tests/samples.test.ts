import { expect, test } from "vitest";
import { busiest, csvOf, labelled, linesOf } from "../src/run/plotting";
import { carriedAt, placeAt, rates, Reader, Samples } from "../src/run/samples";

const HEADER = "t_ns,node,interface,tx_bytes,queue_bytes,queue_drops,lost_packets";
const ROWS = ["0,a,eth0,0,0,0,0", "100000000,a,eth0,125000,3000,2,1", "200000000,a,eth0,125000,0,2,1"];
const TEXT = `${[HEADER, ...ROWS].join("\n")}\n`;

test("a table that comes in pieces of any length is read as the whole", () => {
  const whole = new Samples();
  whole.take("g", TEXT);
  for (const length of [1, 7, 64]) {
    const pieces = new Samples();
    for (let start = 0; start < TEXT.length; start += length) pieces.take("g", TEXT.slice(start, start + length));
    expect(pieces.series).toEqual(whole.series);
  }
  expect(whole.series.get("a:eth0")?.tNs).toEqual([0, 100e6, 200e6]);
});

test("rates are per second of virtual time, and none is known before the second sample", () => {
  const samples = new Samples();
  samples.take("g", TEXT);
  const series = samples.series.get("a:eth0")!;
  expect(rates(series, "tx_bytes", 8)).toEqual([null, 10e6, 0]);
  expect(carriedAt(series, 50e6)).toBeNull();
  expect(carriedAt(series, 150e6)).toEqual({ bitPerS: 10e6, queueBytes: 3000, dropPerS: 30 });
  expect(carriedAt(series, Infinity)?.bitPerS).toBe(0);
});

test("the sample of an instant is the last one until then", () => {
  const instants = [0, 10, 20];
  expect([-1, 0, 9, 10, 25].map((t) => placeAt(instants, t))).toEqual([-1, 0, 0, 1, 2]);
});

test("rows that are none are left out", () => {
  const samples = new Samples();
  samples.take("g", `${TEXT}garbage\n1,2\n,,,,,,\nNaN,a,eth0,1,1,1,1\n150000000,a,eth0,1,1,1,1\n`);
  expect(samples.series.size).toBe(1);
  expect(samples.series.get("a:eth0")?.tNs).toEqual([0, 100e6, 200e6]);
});

test("lines have common instants, go on where an interface has no sample, and are CSV", () => {
  const samples = new Samples();
  samples.take("g", `${TEXT}50000000,b,eth0,0,7,0,0\n`);
  const lines = linesOf(labelled(samples, ["a:eth0", "b:eth0", "none"]), "queue", 100e6);
  expect(lines.tS).toEqual([0, 0.05, 0.1]);
  expect(lines.lines.map((line) => line.values)).toEqual([
    [0, undefined, 3000],
    [undefined, 7, undefined],
  ]);
  expect(csvOf(lines)).toBe("t_s,a:eth0,b:eth0\n0,0,\n0.05,,7\n0.1,3000,\n");
});

test("the same interface of several runs is a line for each, and the busiest is the one that has sent most", () => {
  const [one, two] = [new Samples(), new Samples()];
  one.take("g", `${TEXT}50000000,b,eth0,200000,7,0,0\n`);
  two.take("g", TEXT);
  const both = [one, two].flatMap((samples, n) =>
    labelled(samples, ["a:eth0"]).map(({ series }) => ({ label: `#${n}`, series })),
  );
  const { lines } = linesOf(both, "rate", Infinity);
  expect(lines.map((line) => line.label)).toEqual(["#0", "#1"]);
  expect(lines[0]!.values).toEqual(lines[1]!.values);
  expect(busiest(one, ["a:eth0", "b:eth0"])).toEqual(["b:eth0", "a:eth0"]);
});

test("tables of several guests, whose pieces come by turns and end within lines, stay apart", () => {
  const samples = new Samples();
  const other = TEXT.replace("tx_bytes,queue_bytes", "queue_bytes,tx_bytes").replaceAll(",a,", ",b,");
  for (let start = 0; start < TEXT.length; start += 7) {
    samples.take("one", TEXT.slice(start, start + 7));
    samples.take("two", other.slice(start, start + 7));
  }
  expect([...samples.series.keys()]).toEqual(["a:eth0", "b:eth0"]);
  expect(samples.series.get("a:eth0")!.columns["tx_bytes"]).toEqual([0, 125000, 125000]);
  expect(samples.series.get("b:eth0")!.columns["queue_bytes"]).toEqual([0, 125000, 125000]);
});

test("who asks while a reading is under way gets one that begins after it, and nothing is taken twice", async () => {
  const table = new TextEncoder().encode(TEXT);
  let length = 60;
  let underWay = 0;
  const asked: number[] = [];
  const reader = new Reader(
    new Samples(),
    async (_guest, start) => {
      expect(++underWay).toBe(1);
      asked.push(start);
      await new Promise((done) => setTimeout(done, 5));
      underWay -= 1;
      return table.slice(start, length);
    },
    () => (length = table.length),
  );
  const first = reader.read(["g"]);
  await Promise.resolve();
  await Promise.all([first, reader.read(["g"]), reader.read(["g"])]);
  await reader.read(["g"]);
  expect(asked).toEqual([0, 60, table.length]);
  expect(reader.samples.series.get("a:eth0")?.tNs).toEqual([0, 100e6, 200e6]);
});
