// What is asked for when something is broken on purpose in a run: the fields of a fault, as a lab has them; and which faults
// there were at an instant.
import type { FaultsShown } from "../api/types";

export type FaultShown = FaultsShown["faults"][number];

export type Fault = Record<string, unknown>;

/** What can be done to a node, or by it. */
export const NODE_FAULTS = [
  "pause",
  "kill",
  "crash",
  "stop",
  "reboot",
  "disk",
  "clock",
  "cpu",
  "memory",
  "load",
] as const;
export const LINK_FAULTS = ["flap"] as const;
export const FAULTS = ["partition", ...LINK_FAULTS, ...NODE_FAULTS, "random"] as const;
export type FaultKind = (typeof FAULTS)[number];

/** What a fault is of: whose name is asked for, and what the field is called that says it. */
export interface Subject {
  of: "node" | "process" | "link";
  field: string;
}

/** A partition is of lists of nodes, and what is drawn has no subject. */
export function subjectOf(what: FaultKind): Subject | null {
  if (what === "partition" || what === "random") return null;
  if (what === "kill") return { of: "process", field: "kill" };
  if (what === "flap") return { of: "link", field: "link" };
  return { of: "node", field: what === "load" ? "from" : "node" };
}

/** A field of a fault: what it is called in a lab, and an example of its value; none: it is so or not. */
export interface FaultField {
  name: string;
  example?: string;
  /** Whether it is the name of a node. */
  isNode?: true;
  isNeeded?: true;
}

/** What a node can send to another one. */
export const LOADS = ["http", "udp", "syn"] as const;
export type Load = (typeof LOADS)[number];

/** Of what faults are drawn; other kinds need to be told more. */
export const DRAWN = ["pause", "crash", "stop", "kill", "link", "partition"] as const;

/** The fields that a fault has beside what it is of. */
const FIELDS: Partial<Record<FaultKind, readonly FaultField[]>> = {
  kill: [{ name: "restart", example: "500ms" }],
  flap: [
    { name: "down", example: "100ms", isNeeded: true },
    { name: "up", example: "400ms", isNeeded: true },
  ],
  random: [
    { name: "every", example: "exponential 20s", isNeeded: true },
    { name: "for", example: "uniform 1s..5s", isNeeded: true },
    { name: "on", example: "*" },
    { name: "at_most", example: "1" },
  ],
  disk: [
    { name: "errors", example: "5%" },
    { name: "corrupt", example: "1%" },
    { name: "delay", example: "20ms" },
    { name: "stall", example: "2s" },
    { name: "read_only" },
    { name: "full" },
  ],
  clock: [
    { name: "jump", example: "+2s" },
    { name: "drift", example: "500ppm" },
  ],
  cpu: [{ name: "to", example: "0.1" }],
  memory: [{ name: "leave", example: "64MiB" }],
};

/** Who does not hear whom: of which lists of nodes a partition is made, or among which nodes it is drawn. */
export const SHAPES = ["groups", "one_way", "isolate", "halves", "majority", "ring", "bridge"] as const;
export type Shape = (typeof SHAPES)[number];

/** When a fault begins, as in a lab; empty: now. */
const begun = (at: string): Fault => (at.trim() ? { at: at.trim() } : {});

/** How long it lasts, as in a lab; empty: until it is undone. */
const lasting = (lasts: string): Fault => (lasts.trim() ? { for: lasts.trim() } : {});

/** The fields that a fault has beside what it is of; a load those that go with what is sent. */
export function fieldsOf(what: FaultKind, sent: Load): readonly FaultField[] {
  if (what !== "load") return FIELDS[what] ?? [];
  return [
    { name: "to", example: "", isNode: true, isNeeded: true },
    { name: sent, example: "100/s", isNeeded: true },
    { name: "port", example: sent === "udp" ? "9" : "80" },
    ...(sent === "udp" ? [{ name: "size", example: "512B" }] : sent === "http" ? [{ name: "path", example: "/" }] : []),
  ];
}

/** Whether one says how long it lasts: a reboot takes as long as it takes, and a death is undone by `restart`. */
export const hasEnd = (what: FaultKind): boolean => what !== "reboot" && what !== "kill";

/** What is filled in of a fault, as somebody wrote it. */
export interface Asked {
  /** The name of what it is of. */
  whom?: string;
  values?: Readonly<Record<string, string | boolean>>;
  sent?: Load;
  /** Kinds of those that are drawn. */
  drawn?: readonly string[];
  lasts?: string;
  at?: string;
}

/** A fault as in a lab, of whose fields those count that are filled in. */
export function faultOf(what: Exclude<FaultKind, "partition">, asked: Asked): Fault {
  const { values = {}, sent = "http", drawn = [], lasts = "", at = "" } = asked;
  const whom = asked.whom?.trim() ?? "";
  const fields = fieldsOf(what, sent);
  const filled: Fault = Object.fromEntries(
    fields.flatMap(({ name }) => {
      const value = typeof values[name] === "string" ? values[name].trim() : values[name];
      return value ? [[name, value]] : [];
    }),
  );
  const when = { ...(hasEnd(what) ? lasting(lasts) : {}), ...begun(at) };
  if (what === "kill") return { kill: whom, ...filled, ...when };
  if (what === "random") {
    const on = filled["on"] ? { on: namesIn(filled["on"] as string) } : {};
    return { random: { ...filled, ...on, of: drawn }, ...when };
  }
  return { [what]: fields.length ? { [subjectOf(what)!.field]: whom, ...filled } : whom, ...when };
}

/** Names or patterns, with commas between them. */
const namesIn = (list: string): string[] => list.split(",").flatMap((one) => one.trim() || []);

/** A partition of nodes, each list of them as somebody writes it: names or patterns, with commas between them. */
export function partitionFault(shape: Shape, lists: readonly string[], lasts: string, at = ""): Fault {
  const [first = [], second = [], ...more] = lists.map(namesIn);
  const groups = [first, second, ...more].filter((group) => group.length);
  const partition =
    shape === "groups" ? groups : shape === "one_way" ? { from: first, to: second } : { [shape]: first };
  return { partition, ...lasting(lasts), ...begun(at) };
}

/** A fault of a link that has these settings, each a path such as `a_to_b.delay.jitter` and its value. */
export function linkFault(
  link: string,
  settings: readonly (readonly [string, string])[],
  lasts: string,
  at = "",
): Fault {
  const fault: Fault = { link, for: lasts.trim(), ...begun(at) };
  for (const [path, value] of settings) {
    const steps = path.split(".");
    const last = steps.pop()!;
    let place = fault;
    for (const step of steps) {
      const below = place[step];
      place = (place[step] = below && typeof below === "object" ? below : below ? { mean: below } : {}) as Fault;
    }
    const there = place[last];
    if (there && typeof there === "object") (there as Fault)["mean"] = value;
    else place[last] = path === "down" ? value === "true" : value;
  }
  return fault;
}

/** What several faults are called that are one as it was asked for: `hand1` of `hand1-2`. */
export const askedAs = (name: string): string => name.replace(/(-\d+)+$/, "");

/** So many that are yet to begin are shown one by one, of those that were asked for together. */
const WAITING_SHOWN_MAX = 3;

/** Faults as they are listed, and beside them those of which too many are yet to begin: what they are called, and how many. */
export function gathered(faults: readonly FaultShown[]): { shown: FaultShown[]; waiting: Map<string, number> } {
  const waiting = new Map<string, number>();
  const isWaiting = (one: FaultShown) => one.state === "waiting" && askedAs(one.name) !== one.name;
  for (const one of faults.filter(isWaiting)) waiting.set(askedAs(one.name), (waiting.get(askedAs(one.name)) ?? 0) + 1);
  for (const [name, count] of waiting) if (count <= WAITING_SHOWN_MAX) waiting.delete(name);
  return { shown: faults.filter((one) => !isWaiting(one) || !waiting.has(askedAs(one.name))), waiting };
}

/** The faults that had begun at an instant, as they were then. */
export function faultsAt(faults: readonly FaultShown[], ns: number): FaultShown[] {
  return faults
    .filter((one) => one.began_ns !== null && one.began_ns <= ns)
    .map((one) => (one.ended_ns !== null && one.ended_ns > ns ? { ...one, state: "lasting", ended_ns: null } : one));
}
