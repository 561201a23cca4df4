// What is asked for when something is broken on purpose in a run: the fields of a fault, as a lab has them; and which faults
// there were at an instant.
import type { FaultsShown } from "../api/types";

export type FaultShown = FaultsShown["faults"][number];

export type Fault = Record<string, unknown>;

/** What can be done to a node, and whether it lasts. */
export const NODE_FAULTS = ["pause", "crash", "stop", "reboot"] as const;
export type NodeFault = (typeof NODE_FAULTS)[number];

/** When a fault begins, as in a lab; empty: now. */
const begun = (at: string): Fault => (at.trim() ? { at: at.trim() } : {});

/** A fault of a node; `lasts` is as in a lab, empty: until it is undone. A reboot takes as long as it takes. */
export function nodeFault(what: NodeFault, node: string, lasts: string, at = ""): Fault {
  return { [what]: node, ...(lasts.trim() && what !== "reboot" ? { for: lasts.trim() } : {}), ...begun(at) };
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
