// Over which machines or guests a run is spread, and which nodes are on each. Pure.
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
  return [...found.values()].sort(byName);
}

/** The guests of a run that is on one machine, as if each were one; none: there is only one guest. */
export function guestsOf(
  record: Pick<RunRecord, "guests"> | null,
  nodes: readonly { name: string; guest?: string }[],
): OneMachine[] {
  const guests = record?.guests ?? [];
  if (guests.length < 2 || guests.some((one) => one.machine)) return [];
  return guests
    .map(({ name }) => ({
      name,
      guests: [name],
      nodes: nodes.filter((node) => node.guest === name).map((node) => node.name),
      isLost: false,
    }))
    .sort(byName);
}

/** Those that are shown of many: the ones that work most, these first; of a few all, in their order. */
export function busiest<Part>(parts: readonly Part[], most: number, busy: (part: Part) => number | null): Part[] {
  if (parts.length <= most) return [...parts];
  return [...parts].sort((one, other) => (busy(other) ?? 0) - (busy(one) ?? 0)).slice(0, most);
}

function byName(one: OneMachine, other: OneMachine): number {
  return one.name.localeCompare(other.name, "en", { numeric: true });
}
