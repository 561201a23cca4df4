// Over which machines a run is spread, and which nodes are on each. Pure.
import type { RunRecord } from "./record";

export interface OneMachine {
  name: string;
  guests: string[];
  nodes: string[];
  isLost: boolean;
}

/** The machines of a run, by their names; none: it is on one, or has not booted yet. */
export function machinesOf(
  record: Pick<RunRecord, "guests" | "lost_machine"> | null,
  nodes: readonly { name: string; guest?: string }[],
): OneMachine[] {
  const found = new Map<string, OneMachine>();
  for (const { name: guest, machine } of record?.guests ?? []) {
    if (!machine) continue;
    const one = found.get(machine) ?? {
      name: machine,
      guests: [],
      nodes: [],
      isLost: record!.lost_machine === machine,
    };
    one.guests.push(guest);
    one.nodes.push(...nodes.filter((node) => node.guest === guest).map((node) => node.name));
    found.set(machine, one);
  }
  return [...found.values()].sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));
}
