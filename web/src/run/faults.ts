// What is asked for when something is broken on purpose in a run: the fields of a fault, as a lab has them; and which faults
// there were at an instant.
import type { FaultsShown } from "../api/types";

export type FaultShown = FaultsShown["faults"][number];

export type Fault = Record<string, unknown>;

/** What can be done to a node. */
export const NODE_FAULTS = ["pause", "crash", "stop", "reboot", "disk", "clock", "cpu", "memory"] as const;
export const FAULTS = ["partition", ...NODE_FAULTS] as const;
export type FaultKind = (typeof FAULTS)[number];

/** A field of a fault: what it is called in a lab, and an example of its value; none: it is so or not. */
export interface FaultField {
  name: string;
  example?: string;
}

/** The fields that a fault of a node has beside the node. */
export const FAULT_FIELDS: Partial<Record<FaultKind, readonly FaultField[]>> = {
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

/** A fault of a node, of whose fields those count that are filled in. A reboot takes as long as it takes. */
export function nodeFault(
  what: FaultKind,
  node: string,
  values: Readonly<Record<string, string | boolean>>,
  lasts: string,
  at = "",
): Fault {
  const filled = (FAULT_FIELDS[what] ?? []).flatMap(({ name }) => {
    const value = typeof values[name] === "string" ? values[name].trim() : values[name];
    return value ? [[name, value]] : [];
  });
  const whom = node.trim();
  const said = FAULT_FIELDS[what] ? { node: whom, ...Object.fromEntries(filled) } : whom;
  return { [what]: said, ...(what === "reboot" ? {} : lasting(lasts)), ...begun(at) };
}

/** A partition of nodes, each list of them as somebody writes it: names or patterns, with commas between them. */
export function partitionFault(shape: Shape, lists: readonly string[], lasts: string, at = ""): Fault {
  const [first = [], second = [], ...more] = lists.map((list) => list.split(",").flatMap((one) => one.trim() || []));
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

/** The faults that had begun at an instant, as they were then. */
export function faultsAt(faults: readonly FaultShown[], ns: number): FaultShown[] {
  return faults
    .filter((one) => one.began_ns !== null && one.began_ns <= ns)
    .map((one) => (one.ended_ns !== null && one.ended_ns > ns ? { ...one, state: "lasting", ended_ns: null } : one));
}
