// What a run tells of itself, folded into a picture of any instant. Pure: whoever scrubs through a run gets the same
// picture as who was there, since both are this function of the same happenings.

export interface RunEvent {
  t_ns: number;
  kind: string;
  process?: string;
  node?: string;
  fault?: string;
  link?: string;
  what?: string;
  up?: boolean;
  reason?: string;
  status?: number | null;
  signal?: number;
  expected?: boolean;
  program?: string;
  at_ns?: number;
  [more: string]: unknown;
}

export interface ClockChange {
  virtual_s: number;
  host_s: number;
  tdf: number | null;
  reason: string;
}

export type Happening =
  | { kind: "state"; state: string }
  | { kind: "progress"; done: number; total: number; what: string }
  | { kind: "event"; event: RunEvent }
  | { kind: "clock"; change: ClockChange }
  | { kind: "again"; why: string; tdf: number };

export type ProcessState = "waiting" | "running" | "ready" | "exited" | "failed" | "skipped";

export interface ProcessPicture {
  name: string;
  node: string;
  state: ProcessState;
  told: string;
}

export interface LinkPicture {
  up: boolean;
  told: string;
}

export interface RunPicture {
  state: string;
  building: { done: number; total: number; what: string } | null;
  processes: Map<string, ProcessPicture>;
  links: Map<string, LinkPicture>;
  faults: Map<string, string>;
  clock: ClockChange | null;
  clockChanges: ClockChange[];
  events: RunEvent[];
}

export function emptyPicture(): RunPicture {
  return {
    state: "",
    building: null,
    processes: new Map(),
    links: new Map(),
    faults: new Map(),
    clock: null,
    clockChanges: [],
    events: [],
  };
}

/** Takes a happening into a picture, in place. */
export function take(picture: RunPicture, happening: Happening): RunPicture {
  switch (happening.kind) {
    case "state":
      picture.state = happening.state;
      if (happening.state === "running") picture.building = null;
      return picture;
    case "progress":
      picture.building = { done: happening.done, total: happening.total, what: happening.what };
      return picture;
    case "clock":
      picture.clock = happening.change;
      picture.clockChanges.push(happening.change);
      return picture;
    case "again":
      return Object.assign(picture, emptyPicture());
    case "event":
      takeEvent(picture, happening.event);
      picture.events.push(happening.event);
  }
  return picture;
}

function takeEvent(picture: RunPicture, event: RunEvent): void {
  if (event.fault !== undefined) {
    if (event.kind === "began") picture.faults.set(event.fault, event.what ?? event.fault);
    if (event.kind === "undone") picture.faults.delete(event.fault);
    return;
  }
  if (event.kind === "link-changed" && event.link !== undefined) {
    picture.links.set(event.link, { up: event.up ?? true, told: event.what ?? "" });
    return;
  }
  if (event.process === undefined) return;
  const state = processState(event);
  if (state === null) return;
  const key = `${event.node}/${event.process}`;
  picture.processes.set(key, { name: event.process, node: event.node ?? "", state, told: outcome(event) });
}

function processState(event: RunEvent): ProcessState | null {
  switch (event.kind) {
    case "started":
      return "running";
    case "ready":
      return "ready";
    case "exited":
      return event.expected === false ? "failed" : "exited";
    case "start-failed":
    case "ready-timeout":
      return "failed";
    case "skipped":
      return "skipped";
  }
  return null;
}

/** How something ended, in words; empty: there is nothing to say. */
export function outcome(event: RunEvent): string {
  if (event.signal !== undefined) return `signal ${event.signal}`;
  if (event.kind === "exited" && event.status !== undefined) return `status ${event.status}`;
  return event.reason ?? "";
}

/** The picture of a run at a virtual instant: of all happenings, those until then. Events of several guests may come out
 * of order, so all are looked at. */
export function pictureAt(happenings: Iterable<Happening>, untilNs: number): RunPicture {
  const picture = emptyPicture();
  for (const happening of happenings) {
    if (happening.kind === "event" && happening.event.t_ns > untilNs) continue;
    if (happening.kind === "clock" && happening.change.virtual_s * 1e9 > untilNs) continue;
    if (happening.kind === "state" && isFinal(happening.state) && untilNs !== Infinity) continue;
    take(picture, happening);
  }
  return picture;
}

export function isFinal(state: string): boolean {
  return ["finished", "failed", "aborted", "refused", "cancelled"].includes(state);
}

/** Spans of virtual time in which faults had their effect; the end is null where it still has. */
export interface Band {
  name: string;
  what: string;
  beginNs: number;
  endNs: number | null;
}

export function bands(events: readonly RunEvent[]): Band[] {
  const found: Band[] = [];
  for (const event of events) {
    if (event.fault !== undefined && event.kind === "began") {
      found.push({ name: event.fault, what: event.what ?? event.fault, beginNs: event.t_ns, endNs: null });
    } else if (event.fault !== undefined && event.kind === "undone") {
      const open = found.find((band) => band.name === event.fault && band.endNs === null);
      if (open) open.endNs = event.t_ns;
    } else if (event.kind === "link-changed" && event.link !== undefined) {
      const open = found.find((band) => band.name === event.link && band.endNs === null);
      if (open) open.endNs = event.t_ns;
      if (event.up === false) {
        found.push({ name: event.link, what: `${event.link} down`, beginNs: event.t_ns, endNs: null });
      }
    }
  }
  return found;
}

/** Instants at which links became something else and stayed up, as spans that take no time. */
export function changes(events: readonly RunEvent[]): Band[] {
  return events.flatMap((event) =>
    event.kind === "link-changed" && event.link !== undefined && event.up !== false
      ? [{ name: event.link, what: event.what ?? "", beginNs: event.t_ns, endNs: event.t_ns }]
      : [],
  );
}

/** Lines of `events.jsonl`; a guest may have written anything, and what is no event is left out. */
export function readEvents(text: string): RunEvent[] {
  const found: RunEvent[] = [];
  for (const line of text.split("\n")) {
    try {
      const event = JSON.parse(line);
      if (typeof event?.t_ns === "number" && typeof event?.kind === "string") found.push(event);
    } catch {
      continue;
    }
  }
  return found;
}
