// Going from node to node by the arrows, and what a box between two of them holds: what a pointer does by eye.
import type { Point } from "./shape";

type Spots = ReadonlyMap<string, Point>;

const WAYS: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
};

/** The way that a key leads, of length one; undefined: it is no arrow. */
export const wayOf = (key: string): Point | undefined => WAYS[key];

/** The node at which a walk begins: that at the upper left. Null: there is none. */
export function firstNode(spots: Spots): string | null {
  return least(spots, (at) => at.x + at.y);
}

/**
 * The next node that way: the nearest ahead, where what lies aside counts twice, so that one goes along rows; what lies more than
 * twice as far aside as ahead is another way. Null: there is none.
 */
export function nextNode(spots: Spots, from: Point, way: Point): string | null {
  return least(spots, (at) => {
    const [x, y] = [at.x - from.x, at.y - from.y];
    const ahead = x * way.x + y * way.y;
    const aside = Math.abs(x * way.y - y * way.x);
    return ahead > 0 && aside <= 2 * ahead ? ahead + 2 * aside : Infinity;
  });
}

/** The nodes in the box that has these two places as corners, its edges included. */
export function nodesBetween(spots: Spots, one: Point, other: Point): string[] {
  const isBetween = (value: number, a: number, b: number) => Math.min(a, b) <= value && value <= Math.max(a, b);
  const found = [...spots].filter(([, at]) => isBetween(at.x, one.x, other.x) && isBetween(at.y, one.y, other.y));
  return found.map(([name]) => name);
}

function least(spots: Spots, costOf: (at: Point) => number): string | null {
  let found: string | null = null;
  let lowest = Infinity;
  for (const [name, at] of spots) {
    const cost = costOf(at);
    if (cost < lowest) [found, lowest] = [name, cost];
  }
  return found;
}
