// The text of a lab as what a canvas shows, and what is drawn as changes of that text.
//
// The text is the truth. A change edits the document that the text means (the `yaml` package keeps comments and order),
// and of what that writes only the lines that differ are taken over: all other lines stay to the letter, however their
// author has spaced them. Pure.
import {
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";

export interface LabNode {
  name: string;
  kind: string;
  group: string;
  line: number;
}

export interface LabEnd {
  node: string;
  interface: string;
}

export interface LabLink {
  /** Its place in `links`. */
  place: number;
  ends: [LabEnd, LabEnd];
  rate: string;
  delay: string;
  line: number;
}

export interface Lab {
  nodes: LabNode[];
  links: LabLink[];
  hasTopology: boolean;
  /** Mistakes of the text as YAML; its mistakes as a lab are found by the server. */
  mistakes: { line: number; column: number; message: string }[];
}

export type Path = (string | number)[];

export function readLab(text: string): Lab {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const lineOf = (node: unknown) => {
    const range = (node as { range?: [number, number, number] | null } | null)?.range;
    return range ? lines.linePos(range[0]).line : 0;
  };
  const lab: Lab = { nodes: [], links: [], hasTopology: false, mistakes: [] };
  lab.mistakes = document.errors.map((error) => ({
    line: error.linePos?.[0].line ?? 0,
    column: error.linePos?.[0].col ?? 0,
    message: error.message.split("\n")[0] ?? "",
  }));
  if (!isMap(document.contents)) return lab;
  lab.hasTopology = document.has("topology");
  const nodes = document.get("nodes");
  if (isMap(nodes)) {
    for (const pair of nodes.items) {
      const value = resolved(pair.value, document);
      const name = word(pair.key);
      if (name)
        lab.nodes.push({ name, kind: field(value, "kind"), group: field(value, "group"), line: lineOf(pair.key) });
    }
  }
  const links = document.get("links");
  if (isSeq(links)) {
    links.items.forEach((item, place) => {
      const value = resolved(item, document);
      const ends = endsOf(isMap(value) ? value.get("endpoints", true) : value);
      if (ends)
        lab.links.push({ place, ends, rate: field(value, "rate"), delay: field(value, "delay"), line: lineOf(item) });
    });
  }
  return lab;
}

function resolved(node: unknown, document: Document): unknown {
  const alias = node as { resolve?: (document: Document) => unknown } | null;
  return typeof alias?.resolve === "function" ? alias.resolve(document) : node;
}

function word(node: unknown): string {
  const value = isScalar(node) ? (node.source ?? node.value) : node;
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

function field(node: unknown, name: string): string {
  return isMap(node) ? word(node.get(name, true)) : "";
}

/** The ends of a link: `a -- b`, `a:eth0 -- b:eth1`, or a list of two. */
function endsOf(node: unknown): [LabEnd, LabEnd] | null {
  const written = isSeq(node) ? node.items.map(word) : word(node).split(/\s+--\s+/);
  const ends = written.map((end) => {
    const [name = "", interfaceName = ""] = end.trim().split(":");
    return { node: name, interface: interfaceName };
  });
  return ends.length === 2 && ends.every((end) => end.node) ? (ends as [LabEnd, LabEnd]) : null;
}

/** A changed text. Throws where the text is no YAML: there is nothing that could be changed then. */
export function changed(text: string, change: (document: Document) => void): string {
  const document = parseDocument(text);
  if (document.errors.length) throw new Error(document.errors[0]!.message);
  const style = {
    lineWidth: 0,
    flowCollectionPadding: /\{ \S/.test(text),
    indentSeq: !/^\w+:[^\n]*\n- /m.test(text),
  };
  const before = document.toString(style);
  change(document);
  return merged(text, before, document.toString(style));
}

/** `text` with the lines replaced that differ between `before`, which is how the text is written anew, and `after`. */
export function merged(text: string, before: string, after: string): string {
  const [old, was, now] = [text.split("\n"), before.split("\n"), after.split("\n")];
  let first = 0;
  while (first < Math.min(was.length, now.length) && was[first] === now[first]) first++;
  let last = 0;
  const most = Math.min(was.length, now.length) - first;
  while (last < most && was[was.length - 1 - last] === now[now.length - 1 - last]) last++;
  const places = aligned(was, old);
  // A line that is written in another way has no counterpart: then more is taken over than has changed.
  while (first > 0 && places[first - 1] === null) first--;
  while (last > 0 && places[was.length - last] === null) last--;
  const begin = first > 0 ? places[first - 1]! + 1 : 0;
  const end = last > 0 ? places[was.length - last]! : old.length;
  return [...old.slice(0, begin), ...now.slice(first, now.length - last), ...old.slice(end)].join("\n");
}

/** Of each line the place of its counterpart, by the longest common subsequence of lines that differ in spaces alone. */
function aligned(lines: readonly string[], others: readonly string[]): (number | null)[] {
  const [a, b] = [lines, others].map((all) => all.map((line) => line.replace(/\s+/g, ""))) as [string[], string[]];
  const found: (number | null)[] = a.map(() => null);
  let first = 0;
  while (first < Math.min(a.length, b.length) && a[first] === b[first]) found[first] = first++;
  let tail = 0;
  const most = Math.min(a.length, b.length) - first;
  while (tail < most && a[a.length - 1 - tail] === b[b.length - 1 - tail]) {
    found[a.length - 1 - tail] = b.length - 1 - tail;
    tail++;
  }
  const [rows, columns] = [a.length - first - tail, b.length - first - tail];
  const width = columns + 1;
  const longest = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      longest[i * width + j] =
        a[first + i] === b[first + j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  for (let i = 0, j = 0; i < rows && j < columns;) {
    if (a[first + i] === b[first + j]) found[first + i++] = first + j++;
    else if (longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!) i++;
    else j++;
  }
  return found;
}

function mapping(document: Document, name: string): YAMLMap {
  const found = document.get(name);
  if (isMap(found)) return found;
  const made = document.createNode({}) as YAMLMap;
  document.set(name, made);
  return made;
}

function sequence(document: Document, name: string): YAMLSeq {
  const found = document.get(name);
  if (isSeq(found)) return found;
  const made = document.createNode([]) as YAMLSeq;
  document.set(name, made);
  return made;
}

/** A name that no node has yet: the first letter of its kind and a number. */
export function freeName(taken: Iterable<string>, kind: string): string {
  const names = new Set(taken);
  const letter = kind === "switch" || kind === "ovs" ? "s" : kind.slice(0, 1) || "h";
  for (let number = 1; ; number++) if (!names.has(`${letter}${number}`)) return `${letter}${number}`;
}

/** Adds a node; `image`: of which it is, empty: none. */
export function addNode(text: string, name: string, kind: string, image = ""): string {
  return changed(text, (document) => {
    const nodes = mapping(document, "nodes");
    const said = { ...(kind && kind !== "host" ? { kind } : {}), ...(image ? { image } : {}) };
    const value = document.createNode(Object.keys(said).length ? said : null, { flow: true });
    nodes.add(document.createPair(name, value));
    if (nodes.items.length === 1) nodes.flow = false;
  });
}

/** Puts nodes into a group, which the lab then has. */
export function group(text: string, names: readonly string[], into: string): string {
  return changed(text, (document) => {
    for (const name of names) {
      if (isMap(document.getIn(["nodes", name]))) document.setIn(["nodes", name, "group"], into);
      else document.setIn(["nodes", name], document.createNode({ group: into }, { flow: true }));
    }
    const groups = mapping(document, "groups");
    if (groups.has(into)) return;
    groups.add(document.createPair(into, document.createNode({}, { flow: true })));
    if (groups.items.length === 1) groups.flow = false;
  });
}

export function addLink(text: string, from: string, to: string): string {
  return changed(text, (document) => {
    const links = sequence(document, "links");
    links.add(document.createNode({ endpoints: [from, to] }, { flow: true }));
    if (links.items.length === 1) links.flow = false;
  });
}

export function removeLinks(text: string, places: readonly number[]): string {
  return changed(text, (document) => {
    const links = document.get("links");
    if (!isSeq(links)) return;
    const gone = new Set(places);
    links.items = links.items.filter((_, place) => !gone.has(place));
  });
}

/** Removes nodes with their links; what else names them is told as a mistake, and not removed. */
export function removeNodes(text: string, names: readonly string[]): string {
  const gone = new Set(names);
  const places = readLab(text)
    .links.filter((link) => link.ends.some((end) => gone.has(end.node)))
    .map((link) => link.place);
  return changed(removeLinks(text, places), (document) => {
    const nodes = document.get("nodes");
    if (isMap(nodes)) nodes.items = nodes.items.filter((pair) => !gone.has(word(pair.key)));
  });
}

/** Gives a node another name, where it is a node and where links end. */
export function renameNode(text: string, from: string, to: string): string {
  const renamed = (end: string) =>
    end.replace(/^(\s*)([^\s:]+)/, (whole, space, name) => (name === from ? space + to : whole));
  return changed(text, (document) => {
    const nodes = document.get("nodes");
    if (isMap(nodes)) {
      for (const pair of nodes.items) if (isScalar(pair.key) && word(pair.key) === from) pair.key.value = to;
    }
    const links = document.get("links");
    if (!isSeq(links)) return;
    links.items.forEach((item, place) => {
      const ends = isMap(item) ? item.get("endpoints", true) : item;
      if (isSeq(ends)) {
        for (const end of ends.items) if (isScalar(end)) end.value = renamed(word(end));
      } else if (isScalar(ends)) {
        const value = word(ends)
          .split(/(\s+--\s+)/)
          .map(renamed)
          .join("");
        if (isMap(item)) ends.value = value;
        else links.set(place, value);
      }
    });
  });
}

/** Sets a field to what is written as YAML; an empty text removes it, and a link that was written as text becomes a mapping. */
export function setField(text: string, path: Path, written: string): string {
  return changed(text, (document) => {
    const value = written.trim() ? parseDocument(written).contents : null;
    const owner = path.slice(0, -1);
    const there = document.getIn(owner);
    if (typeof there === "string" && owner[0] === "links") {
      const ends = there.split(/\s+--\s+/);
      document.setIn(owner, document.createNode({ endpoints: ends }, { flow: true }));
    } else if (there === null || there === undefined) {
      document.setIn(owner, document.createNode({}, { flow: true }));
    }
    if (value === null) {
      document.deleteIn(path);
      const left = document.getIn(owner);
      if (isMap(left) && !left.items.length && owner[0] === "nodes") document.setIn(owner, null);
    } else document.setIn(path, value);
  });
}

/** What is written in a field, as YAML on one line; empty: nothing is. */
export function fieldText(text: string, path: Path): string {
  const document = parseDocument(text);
  const node = document.getIn(path, true);
  if (node === undefined || node === null) return "";
  if (isScalar(node)) return word(node);
  return JSON.stringify(document.getIn(path, false) && (node as { toJSON(): unknown }).toJSON())
    .replaceAll('"', "")
    .replaceAll(":", ": ")
    .replaceAll(",", ", ");
}

/** Copies nodes, and the links between them, under names that are free; returns the text and the new names. */
export function duplicate(text: string, names: readonly string[]): { text: string; names: Map<string, string> } {
  const lab = readLab(text);
  const taken = new Set(lab.nodes.map((node) => node.name));
  const copies = new Map<string, string>();
  for (const name of names) {
    const stem = name.replace(/-?\d+$/, "") || name;
    let number = 2;
    while (taken.has(`${stem}-${number}`)) number++;
    taken.add(`${stem}-${number}`);
    copies.set(name, `${stem}-${number}`);
  }
  const next = changed(text, (document) => {
    const nodes = mapping(document, "nodes");
    for (const [name, copy] of copies) {
      const pair = nodes.items.find((one) => isPair(one) && word(one.key) === name);
      if (pair) nodes.add(document.createPair(copy, plain(pair.value)));
    }
    const links = document.get("links");
    if (!isSeq(links)) return;
    for (const link of lab.links) {
      const ends = link.ends.map((end) => copies.get(end.node));
      if (!ends[0] || !ends[1]) continue;
      const value = plain(links.items[link.place]);
      const endpoints = link.ends.map((end, n) => ends[n] + (end.interface ? `:${end.interface}` : ""));
      const fields = typeof value === "object" && value !== null ? value : {};
      links.add(document.createNode({ ...fields, endpoints }, { flow: true }));
    }
  });
  return { text: next, names: copies };
}

function plain(node: unknown): unknown {
  return typeof (node as { toJSON?: unknown } | null)?.toJSON === "function"
    ? (node as { toJSON(): unknown }).toJSON()
    : node;
}

/** Links by a pattern: each node that `from` matches is linked to what `to` makes of it, as `leaf(\d+)` to `spine$1`. */
export function linksByPattern(names: readonly string[], from: string, to: string): [string, string][] {
  const pattern = new RegExp(`^(?:${from})$`);
  const known = new Set(names);
  const found: [string, string][] = [];
  for (const name of names) {
    if (!pattern.test(name)) continue;
    const target = new RegExp(`^(?:${name.replace(pattern, to)})$`);
    for (const other of known.has(name.replace(pattern, to)) ? [name.replace(pattern, to)] : names) {
      if (other !== name && target.test(other)) found.push([name, other]);
    }
  }
  return found;
}
