// What is asked for when something is broken on purpose in a run: the fields of a fault, as a lab has them.

export type Fault = Record<string, unknown>;

/** What can be done to a node, and whether it lasts. */
export const NODE_FAULTS = ["pause", "crash", "stop", "reboot"] as const;
export type NodeFault = (typeof NODE_FAULTS)[number];

/** A fault of a node; `lasts` is as in a lab, empty: until it is undone. A reboot takes as long as it takes. */
export function nodeFault(what: NodeFault, node: string, lasts: string): Fault {
  return { [what]: node, ...(lasts.trim() && what !== "reboot" ? { for: lasts.trim() } : {}) };
}

/** A fault of a link that has these settings, each a path such as `a_to_b.delay.jitter` and its value. */
export function linkFault(link: string, settings: readonly (readonly [string, string])[], lasts: string): Fault {
  const fault: Fault = { link, for: lasts.trim() };
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
