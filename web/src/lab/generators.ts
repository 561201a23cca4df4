// The networks that a lab can generate (docs/topologies.md), with the fields that say how large they are.

export interface Generator {
  name: string;
  fields: { name: string; value: string }[];
}

const field = (name: string, value: number | string) => ({ name, value: String(value) });

export const GENERATORS: readonly Generator[] = [
  { name: "dumbbell", fields: [field("pairs", 2)] },
  { name: "line", fields: [field("nodes", 4), field("hosts", 1)] },
  { name: "ring", fields: [field("nodes", 6), field("hosts", 1)] },
  { name: "star", fields: [field("leaves", 4), field("hosts", 0)] },
  { name: "full-mesh", fields: [field("nodes", 4), field("hosts", 1)] },
  { name: "grid", fields: [field("rows", 3), field("columns", 3), field("hosts", 0)] },
  { name: "torus", fields: [field("rows", 3), field("columns", 3), field("hosts", 0)] },
  { name: "tree", fields: [field("depth", 2), field("fanout", 2)] },
  { name: "fat-tree", fields: [field("k", 4)] },
  { name: "leaf-spine", fields: [field("spines", 2), field("leaves", 4), field("hosts", 2)] },
  { name: "parking-lot", fields: [field("bottlenecks", 2)] },
  { name: "jellyfish", fields: [field("nodes", 8), field("degree", 3), field("hosts", 0)] },
  { name: "waxman", fields: [field("nodes", 12), field("hosts", 0)] },
  { name: "barabasi-albert", fields: [field("nodes", 12), field("links", 2), field("hosts", 0)] },
];

/** What `topology` is written as. */
export function topologyText(name: string, fields: readonly { name: string; value: string }[]): string {
  const rest = fields.filter((one) => one.value.trim()).map((one) => `${one.name}: ${one.value.trim()}`);
  return `{${[`generate: ${name}`, ...rest].join(", ")}}`;
}
