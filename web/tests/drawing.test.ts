import { expect, test } from "vitest";
import { fullness } from "../src/canvas/colours";
import { completed, LAYOUTS, layOut } from "../src/canvas/layouts";
import { rate, size } from "../src/run/units";

const SHAPE = {
  nodes: ["a", "b", "c", "d", "alone"],
  links: [
    ["a", "b"],
    ["b", "c"],
    ["c", "d"],
    ["nowhere", "a"],
  ] as const,
};

test.each(LAYOUTS)("%s puts each node at a place of its own, the same each time", (name) => {
  const found = layOut(name, SHAPE);
  expect([...found.keys()].sort()).toEqual([...SHAPE.nodes].sort());
  expect(new Set([...found.values()].map(({ x, y }) => `${x},${y}`)).size).toBe(SHAPE.nodes.length);
  expect([...found.values()].every(({ x, y }) => Number.isFinite(x) && Number.isFinite(y))).toBe(true);
  expect(layOut(name, SHAPE)).toEqual(found);
});

test.each(LAYOUTS)("%s puts nothing anywhere where there is nothing", (name) => {
  expect(layOut(name, { nodes: [], links: [] })).toEqual(new Map());
});

test("what was put somewhere stays there, and what is new is put beside what it is linked to", () => {
  const found = completed({ a: [0, 0], gone: [5, 5] }, SHAPE);
  expect(found.get("a")).toEqual({ x: 0, y: 0 });
  expect([...found.keys()].sort()).toEqual([...SHAPE.nodes].sort());
  expect(Math.hypot(found.get("b")!.x, found.get("b")!.y)).toBeCloseTo(140);
});

/** A fat tree of switches with k ports, as SIGCOMM'08 has it. */
function fatTree(k: number) {
  const half = k / 2;
  const links: [string, string][] = [];
  for (let agg = 0; agg < k * half; agg++)
    for (let n = 0; n < half; n++) {
      links.push([`core${(agg % half) * half + n}`, `agg${agg}`]);
      links.push([`agg${agg}`, `edge${agg - (agg % half) + n}`]);
      links.push([`edge${agg}`, `h${agg * half + n}`]);
    }
  return { nodes: [...new Set(links.flat())], links };
}

test.each([
  [4, 0.6],
  [8, 0.25],
])("a fat tree of %i ports is in tiers, and as large as it can be", (k, least) => {
  const found = completed({}, fatTree(k));
  const rows = new Set(
    [...found].map(([node, { y }]) => (node.startsWith("h") ? "h" : `${node.replace(/\d+/, "")} ${y}`)),
  );
  expect(rows.size).toBe(4);
  const points = [...found.values()];
  const wide = (of: "x" | "y") => Math.max(...points.map((one) => one[of])) - Math.min(...points.map((one) => one[of]));
  // In a window of 1,280 pixels the canvas of a run has room for so much.
  expect(Math.min(780 / wide("x"), 400 / wide("y"))).toBeGreaterThan(least);
  const apart = points.flatMap((a, n) => points.slice(n + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y)));
  // A node is 34 across.
  expect(Math.min(...apart)).toBeGreaterThan(40);
  expect(layOut("layered", fatTree(k))).toEqual(found);
});

test("a line, a ring and a dumbbell are no tiers", () => {
  const line = { nodes: ["a", "b", "c", "d", "e"], links: [..."abcd"].map((one, n) => [one, "bcde"[n]!] as const) };
  expect(completed({}, line)).toEqual(layOut("force", line));
  const ring = { nodes: line.nodes, links: [...line.links, ["e", "a"] as const] };
  expect(completed({}, ring)).toEqual(layOut("force", ring));
  const hung = { nodes: ["a", "b", "c", "d", "x", "y"], links: ["ax", "bx", "xy", "cy", "dy"].map(pairOf) };
  expect(completed({}, hung)).toEqual(layOut("force", hung));
});

const pairOf = (both: string) => [both[0]!, both[1]!] as const;

test("names of JavaScript's own are names like others", () => {
  expect(completed({ a: [1, 1] }, { nodes: ["a", "constructor", "__proto__"], links: [] }).size).toBe(3);
});

test("links grow warmer and wider with how full they are", () => {
  const colours = [null, 0.1, 0.3, 0.6, 0.85, 1].map((share) => fullness(share, false).colour);
  expect(new Set(colours).size).toBe(6);
  expect(fullness(1.2, true).width).toBe(fullness(1, true).width);
});

test("quantities are what people read", () => {
  expect([0, 999, 1000, 19_996_082, 1e10].map(rate)).toEqual([
    "0 bit/s",
    "999 bit/s",
    "1.00 kbit/s",
    "20.0 Mbit/s",
    "10.0 Gbit/s",
  ]);
  expect(size(1500)).toBe("1.50 kB");
});
