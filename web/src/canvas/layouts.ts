// Where nodes are put that nobody has put anywhere. Pure and without chance: the same network is drawn the same way.
import { neighbours, type Point, type Shape } from "./shape";
import { inTiers, tiersOf } from "./tiers";

export type LayoutName = "force" | "layered" | "radial" | "grid" | "circle";

export const LAYOUTS: readonly LayoutName[] = ["force", "layered", "radial", "grid", "circle"];

const GAP = 140;

export function layOut(name: LayoutName, shape: Shape): Map<string, Point> {
  switch (name) {
    case "grid":
      return grid(shape.nodes);
    case "circle":
      return circle(shape.nodes);
    case "layered":
      return layered(shape);
    case "radial":
      return radial(shape);
    case "force":
      return shape.nodes.length > 400 ? radial(shape) : force(shape);
  }
}

/** Positions for all nodes: those that are kept stay, the others are put beside what they are linked to. */
export function completed(kept: Readonly<Record<string, readonly [number, number]>>, shape: Shape): Map<string, Point> {
  const found = new Map<string, Point>();
  for (const node of shape.nodes) {
    const place = Object.hasOwn(kept, node) ? kept[node] : undefined;
    if (place) found.set(node, { x: place[0], y: place[1] });
  }
  if (!found.size) return layOut(tiersOf(shape) ? "layered" : "force", shape);
  const near = neighbours(shape);
  let row = 0;
  const bottom = Math.max(...[...found.values()].map((point) => point.y));
  const left = Math.min(...[...found.values()].map((point) => point.x));
  for (const node of shape.nodes) {
    if (found.has(node)) continue;
    const placed = (near.get(node) ?? []).map((one) => found.get(one)).filter((point) => point !== undefined);
    if (placed.length) {
      const angle = (found.size * 2.399963) % (2 * Math.PI);
      found.set(node, { x: placed[0]!.x + GAP * Math.cos(angle), y: placed[0]!.y + GAP * Math.sin(angle) });
    } else {
      found.set(node, { x: left + GAP * row++, y: bottom + GAP });
    }
  }
  return found;
}

function grid(nodes: readonly string[]): Map<string, Point> {
  const columns = Math.ceil(Math.sqrt(nodes.length));
  return new Map(nodes.map((node, n) => [node, { x: (n % columns) * GAP, y: Math.floor(n / columns) * GAP }]));
}

function circle(nodes: readonly string[]): Map<string, Point> {
  const radius = Math.max(GAP, (nodes.length * GAP) / (2 * Math.PI));
  return new Map(
    nodes.map((node, n) => {
      const angle = (2 * Math.PI * n) / nodes.length;
      return [node, { x: radius * Math.cos(angle), y: radius * Math.sin(angle) }];
    }),
  );
}

/** Nodes by how far they are from the middle of the network, which is the node with most links. */
function distances(shape: Shape): string[][] {
  const near = neighbours(shape);
  const byLinks = [...shape.nodes].sort((a, b) => near.get(b)!.length - near.get(a)!.length);
  const layers: string[][] = [];
  const seen = new Set<string>();
  for (const root of byLinks) {
    if (seen.has(root)) continue;
    seen.add(root);
    for (let layer = [root], depth = 0; layer.length; depth++) {
      (layers[depth] ??= []).push(...layer);
      const next: string[] = [];
      for (const node of layer) {
        for (const one of near.get(node)!) {
          if (!seen.has(one)) {
            seen.add(one);
            next.push(one);
          }
        }
      }
      layer = next;
    }
  }
  return layers;
}

function layered(shape: Shape): Map<string, Point> {
  const tiers = tiersOf(shape);
  if (tiers) return inTiers(tiers, shape);
  const found = new Map<string, Point>();
  distances(shape).forEach((layer, depth) => {
    layer.forEach((node, n) => found.set(node, { x: (n - (layer.length - 1) / 2) * GAP, y: depth * GAP * 1.2 }));
  });
  return found;
}

function radial(shape: Shape): Map<string, Point> {
  const found = new Map<string, Point>();
  let radius = 0;
  distances(shape).forEach((layer, depth) => {
    radius = depth === 0 && layer.length === 1 ? 0 : Math.max(radius + GAP, (layer.length * GAP * 0.8) / (2 * Math.PI));
    layer.forEach((node, n) => {
      const angle = (2 * Math.PI * n) / layer.length + depth * 0.4;
      found.set(node, { x: radius * Math.cos(angle), y: radius * Math.sin(angle) });
    });
  });
  return found;
}

/** Fruchterman and Reingold, "Graph Drawing by Force-directed Placement" (1991), from a radial start. */
function force(shape: Shape): Map<string, Point> {
  const found = radial(shape);
  const nodes = [...found.values()];
  const links = shape.links
    .map(([a, b]) => [found.get(a), found.get(b)] as const)
    .filter((pair): pair is readonly [Point, Point] => pair[0] !== undefined && pair[1] !== undefined);
  const rounds = nodes.length > 100 ? 60 : 250;
  const moves = new Map(nodes.map((node) => [node, { x: 0, y: 0 }]));
  for (let round = 0; round < rounds; round++) {
    const most = GAP * 0.6 * (1 - round / rounds);
    for (const move of moves.values()) move.x = move.y = 0;
    nodes.forEach((a, n) => {
      for (const b of nodes.slice(n + 1)) {
        push(moves.get(a)!, moves.get(b)!, a, b, (length) => (GAP * GAP) / length);
      }
    });
    for (const [a, b] of links) push(moves.get(a)!, moves.get(b)!, a, b, (length) => -(length * length) / GAP);
    for (const [node, move] of moves) {
      const length = Math.hypot(move.x, move.y) || 1;
      node.x += (move.x / length) * Math.min(length, most);
      node.y += (move.y / length) * Math.min(length, most);
    }
  }
  lieDown(nodes);
  return found;
}

/** Turns points so that they are wider than high, as screens are: their main axis becomes the horizontal one. */
function lieDown(points: readonly Point[]): void {
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const x = mean((point) => point.x);
  const y = mean((point) => point.y);
  const xx = mean((point) => (point.x - x) ** 2);
  const yy = mean((point) => (point.y - y) ** 2);
  const xy = mean((point) => (point.x - x) * (point.y - y));
  const angle = -0.5 * Math.atan2(2 * xy, xx - yy);
  // The first node is on the left, where one begins to read.
  const first = points[0] ?? { x, y };
  const turned = (first.x - x) * Math.cos(angle) - (first.y - y) * Math.sin(angle) > 0 ? angle + Math.PI : angle;
  for (const point of points) {
    const [dx, dy] = [point.x - x, point.y - y];
    point.x = dx * Math.cos(turned) - dy * Math.sin(turned);
    point.y = dx * Math.sin(turned) + dy * Math.cos(turned);
  }
}

function push(moveA: Point, moveB: Point, a: Point, b: Point, strength: (length: number) => number): void {
  const dx = a.x - b.x || 0.01;
  const dy = a.y - b.y || 0.01;
  const length = Math.hypot(dx, dy);
  const by = strength(length) / length;
  moveA.x += dx * by;
  moveA.y += dy * by;
  moveB.x -= dx * by;
  moveB.y -= dy * by;
}
