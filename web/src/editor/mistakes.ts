// Where on the canvas mistakes belong, by the fields that they name. Pure.
import type { Lab } from "../lab/document";

export interface Found {
  nodes: Set<string>;
  /** By their places in `links`. */
  links: Set<number>;
}

export function placesOf(fields: readonly { field: string; line: number }[], lab: Lab): Found {
  const found: Found = { nodes: new Set(), links: new Set() };
  for (const { field, line } of fields) {
    const link = /^links\[(\d+)\]/.exec(field);
    const node = /^nodes\.([^.[]+)/.exec(field);
    if (link) found.links.add(Number(link[1]));
    else if (node) found.nodes.add(node[1]!);
    else {
      for (const one of lab.nodes) if (line && one.line === line) found.nodes.add(one.name);
      for (const one of lab.links) if (line && one.line === line) found.links.add(one.place);
    }
  }
  return found;
}
