import { expect, test } from "vitest";
import { firstNode, nextNode, nodesBetween, wayOf } from "../src/canvas/walking";

// Three rows, the middle one a little aside.
const spots: ReadonlyMap<string, { x: number; y: number }> = new Map(
  [0, 1, 2].flatMap((row) =>
    [0, 1, 2].map((column) => [`r${row}c${column}`, { x: 100 * column + (row === 1 ? 20 : 0), y: 100 * row }] as const),
  ),
);
const walk = (from: string, keys: readonly string[]) =>
  keys.reduce<string>((at, key) => nextNode(spots, spots.get(at)!, wayOf(`Arrow${key}`)!) ?? at, from);

test("a walk goes along rows and columns, and stays where there is nothing ahead", () => {
  expect(firstNode(spots)).toBe("r0c0");
  expect(walk("r0c0", ["Right", "Right", "Right"])).toBe("r0c2");
  expect(walk("r0c0", ["Down"])).toBe("r1c0");
  expect(walk("r0c0", ["Down", "Down", "Right", "Up", "Left"])).toBe("r1c0");
  expect(walk("r0c0", ["Up"])).toBe("r0c0");
  expect(firstNode(new Map())).toBe(null);
});

test("in a random drawing a way is never back, and every node has one", () => {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 50; round++) {
    const drawn = new Map(Array.from({ length: 12 }, (_, n) => [`n${n}`, { x: 900 * random(), y: 600 * random() }]));
    for (const [name, at] of drawn) {
      const found = ["Left", "Right", "Up", "Down"].filter((key) => {
        const way = wayOf(`Arrow${key}`)!;
        const next = nextNode(drawn, at, way);
        const to = next && drawn.get(next)!;
        if (to) expect((to.x - at.x) * way.x + (to.y - at.y) * way.y).toBeGreaterThan(0);
        return to;
      });
      expect(found, `round ${round}: ${name}`).not.toEqual([]);
    }
  }
});

test("a box holds what is between its corners, whichever these are", () => {
  const box = (a: string, b: string) => nodesBetween(spots, spots.get(a)!, spots.get(b)!).sort();
  expect(box("r0c0", "r1c1")).toEqual(["r0c0", "r0c1", "r1c0", "r1c1"]);
  expect(box("r1c1", "r0c0")).toEqual(["r0c0", "r0c1", "r1c0", "r1c1"]);
  expect(box("r2c2", "r2c2")).toEqual(["r2c2"]);
});
