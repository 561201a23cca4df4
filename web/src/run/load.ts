// How much the machines of a run work, and how long they wait for each other, of what its guests have counted. Pure.
import type { RunStatus } from "../api/types";
import type { OneMachine } from "./machines";
import type { RunRecord } from "./record";

type Counted = Pick<RunStatus["guests"][number], "name" | "busy_s" | "waited_host_s">;

/** What was counted up to a moment. */
export interface Look {
  hostS: number;
  virtualS: number;
  guests: readonly Counted[];
}

export interface Load {
  /** The share of virtual time in which its busiest guest worked. */
  busy: number | null;
  /** The share of host time in which the guest that waits least waited: a machine is not kept up while a guest of it goes on. */
  waits: number | null;
}

/** Over how much host time it is told: long enough for even figures, short enough for what goes on. */
export const RECENT_HOST_S = 4;

/** Before all. */
export const NOTHING: Look = { hostS: 0, virtualS: 0, guests: [] };

/** The last looks at a run that goes on. */
export class Looks {
  private looks: Look[] = [NOTHING];
  /** The last one while virtual time stood still. */
  private still: Look | null = null;

  note(status: Pick<RunStatus, "clock" | "guests">): void {
    if (!status.clock) return;
    const look = { hostS: status.clock.host_s, virtualS: status.clock.virtual_s, guests: status.guests };
    // A run that is made again begins anew.
    if (look.hostS < this.looks.at(-1)!.hostS) [this.looks, this.still] = [[NOTHING], null];
    // While virtual time stands still nobody works, and what was seen last stays, until it goes on.
    if (look.virtualS <= this.looks.at(-1)!.virtualS) {
      this.still = look;
      return;
    }
    if (this.still) [this.looks, this.still] = [[this.still], null];
    this.looks.push(look);
    while (this.looks.length > 2 && look.hostS - this.looks[1]!.hostS >= RECENT_HOST_S) this.looks.shift();
  }

  /** Virtual seconds per host second; null: there was no look yet. */
  get speed(): number | null {
    const [first, last] = [this.looks[0]!, this.looks.at(-1)!];
    return last.hostS > first.hostS ? (last.virtualS - first.virtualS) / (last.hostS - first.hostS) : null;
  }

  of(machine: OneMachine): Load {
    return loadOf(machine, this.looks[0]!, this.looks.at(-1)!);
  }
}

/** That of the whole of a run that is over. */
export function loadOfRecord(machine: OneMachine, record: Pick<RunRecord, "time" | "guests">): Load {
  const { host_s: hostS, virtual_s: virtualS } = record.time;
  const guests = record.guests.flatMap(({ name, fidelity, waits }) =>
    fidelity?.busy == null
      ? []
      : [{ name, busy_s: fidelity.busy * virtualS, waited_host_s: waits?.waited_host_s ?? null }],
  );
  return loadOf(machine, NOTHING, { hostS, virtualS, guests });
}

/** That between two looks. */
export function loadOf(machine: OneMachine, before: Look, after: Look): Load {
  const earlier = new Map(before.guests.map((guest) => [guest.name, guest]));
  const [hostS, virtualS] = [after.hostS - before.hostS, after.virtualS - before.virtualS];
  const its = after.guests.filter((guest) => machine.guests.includes(guest.name));
  const share = (now: number, then: number, all: number) => Math.min(1, Math.max(0, (now - then) / all));
  const busy = its.map((guest) => share(guest.busy_s, earlier.get(guest.name)?.busy_s ?? 0, virtualS));
  const waits = its.flatMap(({ name, waited_host_s: waited }) =>
    waited === null ? [] : [share(waited, earlier.get(name)?.waited_host_s ?? 0, hostS)],
  );
  return {
    busy: busy.length && virtualS > 0 ? Math.max(...busy) : null,
    waits: waits.length && hostS > 0 ? Math.min(...waits) : null,
  };
}
