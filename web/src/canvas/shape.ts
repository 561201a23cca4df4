// A network as it is put somewhere: nodes, what links them, and places.

export interface Point {
  x: number;
  y: number;
}

export interface Shape {
  nodes: readonly string[];
  links: readonly (readonly [string, string])[];
}

/** Those that each node is linked to. */
export function neighbours(shape: Shape): Map<string, string[]> {
  const found = new Map<string, string[]>(shape.nodes.map((node) => [node, []]));
  for (const [a, b] of shape.links) {
    const [ofA, ofB] = [found.get(a), found.get(b)];
    if (!ofA || !ofB) continue;
    ofA.push(b);
    ofB.push(a);
  }
  return found;
}
