// Networks in tiers, as those of data centres are: hosts at the bottom, and each link leads from a tier to the next one. Pure.
//
// By forces such a network becomes a ball, far larger than its nodes need. In rows it is as wide as its widest tier, which
// are the hosts; so these are stacked below the node that they hang on, in as many columns as make all of it largest.
import { neighbours, type Point, type Shape } from "./shape";

const TIER_GAP = 150;
const HOST_GAP = 56;
const GAP_MOST = 140;
/** How much wider than high a drawing may be without being made smaller. */
const ASPECT = 1.5;
const COLUMNS_MOST = 8;

/** The tiers, from the top down to nodes that hang on a single other one; null: it has none, or so few nodes that a line is one. */
export function tiersOf(shape: Shape): string[][] | null {
  const near = neighbours(shape);
  const tierOf = new Map<string, number>();
  const tiers: string[][] = [];
  let tier = shape.nodes.filter((node) => new Set(near.get(node)).size === 1);
  if (tier.length < 3) return null;
  while (tier.length) {
    for (const node of tier) tierOf.set(node, tiers.length);
    tiers.unshift(tier);
    tier = [...new Set(tier.flatMap((node) => near.get(node)!.filter((one) => !tierOf.has(one))))];
  }
  const isNext = ([node, others]: [string, string[]]) =>
    others.every((one) => Math.abs(tierOf.get(node)! - tierOf.get(one)!) === 1);
  return tiers.length >= 3 && tierOf.size === shape.nodes.length && [...near].every(isNext) ? tiers : null;
}

/** Where nodes in tiers are put: those that hang on the same ones beside each other. */
export function inTiers(tiers: readonly string[][], shape: Shape): Map<string, Point> {
  const near = neighbours(shape);
  const hosts = tiers.at(-1)!;
  const holders = tiers.at(-2)!;
  const rows = tiers.slice(0, -1);
  const most = Math.max(...holders.map((node) => hosts.filter((host) => near.get(host)!.includes(node)).length));
  const { columns, width } = shapeOf(Math.max(...rows.map((row) => row.length)), rows.length, most);
  const found = new Map<string, Point>();
  for (const [depth, row] of [...rows.entries()].reverse()) {
    const below = (node: string) => near.get(node)!.flatMap((one) => found.get(one)?.x ?? []);
    const middle = new Map(row.map((node) => [node, mean(below(node))]));
    const ordered = depth === rows.length - 1 ? row : [...row].sort((a, b) => middle.get(a)! - middle.get(b)!);
    ordered.forEach((node, n) => found.set(node, { x: ((n + 0.5) / row.length - 0.5) * width, y: depth * TIER_GAP }));
  }
  for (const holder of holders) {
    const held = hosts.filter((host) => near.get(host)!.includes(holder));
    const { x, y } = found.get(holder)!;
    const across = Math.min(columns, held.length);
    held.forEach((host, n) =>
      found.set(host, {
        x: x + ((n % across) - (across - 1) / 2) * HOST_GAP,
        y: y + TIER_GAP / 2 + Math.floor(n / across) * HOST_GAP,
      }),
    );
  }
  return found;
}

/** In how many columns hosts are stacked, and how wide all is, so that it can be seen as large as may be. */
function shapeOf(longest: number, rows: number, most: number): { columns: number; width: number } {
  let best = { columns: 1, width: 0, room: 0 };
  for (let columns = 1; columns <= Math.min(most, COLUMNS_MOST); columns++) {
    const height = (rows - 0.5) * TIER_GAP + (Math.ceil(most / columns) - 1) * HOST_GAP;
    const least = (columns === 1 ? 1 : columns + 0.5) * HOST_GAP;
    const gap = Math.max(least, Math.min(GAP_MOST, (ASPECT * height) / longest));
    const room = Math.min(ASPECT / (gap * longest), 1 / height);
    if (room > best.room) best = { columns, width: gap * longest, room };
  }
  return best;
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
