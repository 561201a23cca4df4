// What a lab does at instants that it writes, as bars that can be moved: faults, changes of links and programs. A bar that is
// moved changes the one field that says when, and nothing else of the text. Pure.
import { isMap, isSeq, parseDocument } from "yaml";
import type { Drawing } from "../api/types";
import { setField, type Path } from "./document";

export interface Bar {
  /** Where it is written: `faults`, 2. */
  path: [section: "run" | "changes" | "faults", place: number];
  name: string;
  what: string;
  /** The node of a program. */
  on: string;
  /** The field that moving it changes, and what that counts from: an instant, or how long after something. */
  field: "at" | "start" | "wait";
  atNs: number;
  /** Null: it has no end that is written. */
  forNs: number | null;
  /** What it waits for; empty: nothing. */
  after: string;
}

/** Where a bar is drawn, as far as that can be told. */
export interface Drawn {
  beginNs: number;
  /** Null: until something else ends it, or nobody can tell. */
  endNs: number | null;
}

const UNITS: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };

/** The shortest fault that dragging makes. */
const FOR_NS_MIN = 1e6;

const TICKS_MAX = 8;

/** A duration as a lab writes it, in nanoseconds; null: it is none. */
export function durationNs(text: string): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|h)\s*$/.exec(text);
  return found ? Math.round(Number(found[1]) * UNITS[found[2]!]!) : null;
}

/** Nanoseconds as a lab writes them, in the largest unit in which they are a short number. */
export function durationText(ns: number): string {
  if (ns === 0) return "0s";
  for (const unit of ["s", "ms", "us"] as const)
    if (ns % (UNITS[unit]! / 1000) === 0) return `${ns / UNITS[unit]!}${unit}`;
  return `${ns}ns`;
}

const TIMES = new Set(["at", "after", "wait", "for", "name", "on", "start", "exec"]);

/** All bars of a lab, in the order in which they are written; what is at no instant that can be read is left out. */
export function barsOf(text: string): Bar[] {
  const document = parseDocument(text);
  if (!isMap(document.contents)) return [];
  const bars: Bar[] = [];
  for (const section of ["run", "changes", "faults"] as const) {
    const items = document.get(section);
    if (!isSeq(items)) continue;
    items.items.forEach((item, place) => {
      if (!isMap(item)) return;
      const bar = barOf(section, place, item.toJSON() as Record<string, unknown>);
      if (bar) bars.push(bar);
    });
  }
  return bars;
}

function barOf(section: Bar["path"][0], place: number, fields: Record<string, unknown>): Bar | null {
  const written = (name: string) => (fields[name] === undefined ? "" : words(fields[name]));
  const after = written("after");
  const field = section === "run" ? "start" : after ? "wait" : "at";
  // A program that says nothing, and a fault that says no `wait`, begin at once.
  const atNs = durationNs(written(field) || (field === "at" ? "" : "0s"));
  if (atNs === null) return null;
  const rest = Object.entries(fields).filter(([name]) => !TIMES.has(name));
  const what = section === "run" ? written("exec") : rest.map(([name, value]) => `${name} ${words(value)}`).join(", ");
  const unnamed = { run: what.split(/\s+/)[0] ?? "", faults: `fault${place + 1}`, changes: written("link") }[section];
  return {
    path: [section, place],
    name: written("name") || unnamed,
    what,
    on: section === "run" ? written("on") : "",
    field,
    atNs,
    forNs: section === "faults" ? durationNs(written("for")) : null,
    after,
  };
}

function words(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value).replace(/[{}[\]"]/g, "");
}

/** Where a bar is drawn: at its instant, or where the server says that it begins when what it waits for is over. */
export function drawnAt(bar: Bar, drawing: Drawing | null): Drawn {
  if (bar.path[0] === "run") {
    const program = drawing?.programs.find((one) => one.node === bar.on && one.name === bar.name);
    const beginNs = Math.max(bar.atNs, program?.begin_ns ?? 0);
    const endNs = program?.end_ns ?? null;
    return { beginNs, endNs: endNs !== null && endNs > beginNs ? endNs : null };
  }
  const told = bar.after ? drawing?.course.find((one) => one.name === bar.name)?.at_ns : null;
  const beginNs = told ?? bar.atNs;
  return { beginNs, endNs: bar.forNs === null ? null : beginNs + bar.forNs };
}

/** The text with a bar by so much earlier or later, but not before what it counts from. */
export function moveBar(text: string, bar: Bar, drawn: Drawn, toNs: number): string {
  const fromNs = bar.field === "wait" ? drawn.beginNs - bar.atNs : 0;
  return setField(text, [...bar.path, bar.field] as Path, durationText(Math.max(0, toNs - fromNs)));
}

/** The text with a bar of another length. */
export function resizeBar(text: string, bar: Bar, forNs: number): string {
  return setField(text, [...bar.path, "for"] as Path, durationText(Math.max(FOR_NS_MIN, forNs)));
}

/** The least of 1, 2, 5 times a power of ten that is at least so much. */
function round(atLeast: number): number {
  const power = 10 ** Math.floor(Math.log10(atLeast));
  return Math.max(1, Math.round([1, 2, 5, 10].find((one) => one * power >= atLeast * (1 - 1e-9))! * power));
}

/** How far apart the instants are to which bars snap where so much is shown: fine enough for what a hand can hit. */
export function stepOf(shownNs: number): number {
  return round(shownNs / 200);
}

export function snapped(ns: number, shownNs: number): number {
  const step = stepOf(shownNs);
  return Math.round(ns / step) * step;
}

/** The instants under which a scale is written. */
export function ticksOf(shownNs: number): number[] {
  const step = round(shownNs / TICKS_MAX);
  return Array.from({ length: Math.floor(shownNs / step) + 1 }, (_, n) => n * step);
}
