// The course of a run, a lane for each program, fault and link that changes: what is planned, as far as that can be told,
// and what has happened. Pure: before a run all of it is planned, after it all has happened or never did.
import type { Drawing } from "../api/types";
import { outcome, type RunEvent } from "./happenings";

export interface Span {
  beginNs: number;
  /** Null: until the end of the run, or until something else ends it. */
  endNs: number | null;
  /** What it does, or how it ended. */
  told: string;
}

export interface Planned extends Span {
  /** It waits for something: it begins then, or later. */
  isEarliest: boolean;
}

export interface Happened extends Span {
  isBad: boolean;
}

export interface Lane {
  key: string;
  kind: "program" | "fault" | "change";
  name: string;
  what: string;
  planned: Planned[];
  happened: Happened[];
}

type Entry = Drawing["course"][number];

/** All lanes: those that are planned, programs first, and then what somebody has begun by hand. */
export function courseOf(drawing: Drawing | null, events: readonly RunEvent[]): Lane[] {
  const lanes = new Map<string, Lane>();
  const lane = (kind: Lane["kind"], name: string, what: string): Lane => {
    const key = `${kind} ${name}`;
    const found = lanes.get(key) ?? { key, kind, name, what, planned: [], happened: [] };
    lanes.set(key, found);
    return found;
  };
  for (const { node, name, argv, begin_ns, end_ns, is_earliest } of drawing?.programs ?? []) {
    const one = lane("program", `${node}/${name}`, argv.join(" "));
    if (begin_ns == null) continue;
    one.planned.push({ beginNs: begin_ns, endNs: end_ns ?? null, told: "", isEarliest: is_earliest ?? false });
  }
  const course = [...(drawing?.course ?? [])].sort((a, b) => (a.at_ns ?? Infinity) - (b.at_ns ?? Infinity));
  for (const entry of course) {
    const one = entry.link ? lane("change", entry.link, "") : lane("fault", entry.name || entry.what, entry.what);
    if (entry.at_ns !== null) one.planned.push(plannedOf(entry, entry.at_ns));
  }
  for (const event of events) {
    if (event.fault !== undefined) takeFault(lane, event, event.fault);
    else if (event.kind === "link-changed" && event.link !== undefined)
      lane("change", event.link, "").happened.push({
        beginNs: event.t_ns,
        endNs: event.t_ns,
        told: event.what ?? "",
        isBad: false,
      });
    else if (event.process !== undefined) takeProgram(lane("program", `${event.node}/${event.process}`, ""), event);
  }
  return [...lanes.values()];
}

function plannedOf(entry: Entry, atNs: number): Planned {
  const endNs = entry.link ? atNs : entry.for_ns === null ? null : atNs + entry.for_ns;
  return { beginNs: atNs, endNs, told: entry.what, isEarliest: entry.is_earliest ?? false };
}

function takeFault(lane: (kind: "fault", name: string, what: string) => Lane, event: RunEvent, name: string): void {
  const one = lane("fault", name, event.what ?? name);
  const open = one.happened.find((span) => span.endNs === null);
  if (event.kind === "began") {
    one.happened.push({ beginNs: event.t_ns, endNs: null, told: event.what ?? "", isBad: false });
  } else if (event.kind === "undone" && open) {
    open.endNs = event.t_ns;
  } else if (event.kind.includes("fail") || event.kind === "skipped") {
    one.happened.push({ beginNs: event.t_ns, endNs: event.t_ns, told: outcome(event) || event.kind, isBad: true });
  }
}

function takeProgram(one: Lane, event: RunEvent): void {
  if (event.kind === "started") {
    one.happened.push({ beginNs: event.t_ns, endNs: null, told: "", isBad: false });
    return;
  }
  if (event.kind !== "exited") return;
  const open = one.happened.find((span) => span.endNs === null);
  if (!open) return;
  open.endNs = event.t_ns;
  open.isBad = event.expected === false;
  open.told = outcome(event);
}

/** Where a picture of the course ends: what is planned last, or where the run has come if that is later. Of a run that is
 * over it is there that it ended. */
export function endOf(
  lanes: readonly Lane[],
  reachedNs: number,
  options: { isOver: boolean; foreseenNs: number },
): number {
  if (options.isOver) return Math.max(reachedNs, 1);
  const planned = lanes.flatMap((lane) => lane.planned.map((span) => span.endNs ?? span.beginNs));
  return planned.reduce((most, one) => Math.max(most, one), Math.max(reachedNs, options.foreseenNs, 1));
}
