import { expect, test } from "vitest";
import type { Drawing } from "../src/api/types";
import {
  barsOf,
  drawnAt,
  durationNs,
  durationText,
  moveBar,
  resizeBar,
  snapped,
  stepOf,
  ticksOf,
} from "../src/lab/bars";

const LAB = `name: broken   # of a course
nodes: {a: {}, b: {}}
links: [a -- b]
run:
  - {on: b, name: web, exec: python3 -m http.server 80,   ready: {tcp: 80}}   # serves
  - on: a
    exec: ping -c 5 b # says hello
    start: 2s
changes:
  - {at: 1s, link: a--b, rate: 5Mbit}
faults:
  # first the cable
  - {name: cut, at: 4s, for: 500ms, link: a--b, down: true}   # dark
  - {after: web, wait: 1s, for: 1s, pause: b}
  - {at: soon, pause: a}
`;

test("what a lab does at instants that can be read are bars", () => {
  expect(barsOf(LAB).map(({ name, field, atNs, forNs, after }) => [name, field, atNs, forNs, after])).toEqual([
    ["web", "start", 0, null, ""],
    ["ping", "start", 2e9, null, ""],
    ["a--b", "at", 1e9, null, ""],
    ["cut", "at", 4e9, 5e8, ""],
    ["fault2", "wait", 1e9, 1e9, "web"],
  ]);
  expect(barsOf("run: 3\nfaults: [x, {at: 1}]\n")).toEqual([]);
});

test("a bar that is moved changes its line alone, and of that its instant", () => {
  for (const [n, bar] of barsOf(LAB).entries()) {
    const moved = moveBar(LAB, bar, drawnAt(bar, null), 3.25e9);
    expect(barsOf(moved)[n]!.atNs).toBe(3.25e9);
    const [before, after] = [LAB.split("\n"), moved.split("\n")];
    expect(after.length).toBe(before.length);
    expect(after.filter((line, at) => line !== before[at]).length).toBe(1);
    for (const comment of ["# of a course", "# serves", "# says hello", "# first the cable", "# dark"])
      expect(moved).toContain(comment);
  }
  const cut = barsOf(LAB)[3]!;
  expect(barsOf(resizeBar(LAB, cut, 2e9))[3]!.forNs).toBe(2e9);
  expect(barsOf(moveBar(LAB, cut, drawnAt(cut, null), -5))[3]!.atNs).toBe(0);
  expect(barsOf(resizeBar(LAB, cut, -5))[3]!.forNs).toBe(1e6);
});

test("what waits is drawn where the server says that it begins, and moving it changes how long it waits", () => {
  const program = { node: "a", name: "ping", argv: [], start_ns: null, begin_ns: 25e8, end_ns: 65e8 };
  const entry = { name: "fault2", link: "", at_ns: 5e9, is_earliest: true, for_ns: 1e9, what: "" };
  const drawing = { programs: [program], course: [entry] } as unknown as Drawing;
  const [, ping, , , waits] = barsOf(LAB);
  expect(drawnAt(ping!, drawing)).toEqual({ beginNs: 25e8, endNs: 65e8 });
  const drawn = drawnAt(waits!, drawing);
  expect(drawn).toEqual({ beginNs: 5e9, endNs: 6e9 });
  expect(barsOf(moveBar(LAB, waits!, drawn, 7e9))[4]!.atNs).toBe(3e9);
  // Not before what it waits for, which is at 4 s.
  expect(barsOf(moveBar(LAB, waits!, drawn, 1e9))[4]!.atNs).toBe(0);
});

test("durations are read and written as labs have them", () => {
  expect(["5s", "1.5ms", " 2 min", "7", "soon", "-1s"].map(durationNs)).toEqual([5e9, 1.5e6, 120e9, null, null, null]);
  expect([0, 5e9, 3.25e9, 1.5e6, 250, 90e9].map(durationText)).toEqual(["0s", "5s", "3.25s", "1.5ms", "0.25us", "90s"]);
  for (const ns of [1, 999, 12_345, 5_000_001, 7.2e12]) expect(durationNs(durationText(ns))).toBe(ns);
});

test("instants snap to round ones, finer where less is shown", () => {
  expect(snapped(3.1234e9, 10e9)).toBe(3.1e9);
  expect(snapped(3.1234e9, 100e9)).toBe(3e9);
  expect(snapped(3.1234e9, 1e9)).toBe(3.125e9);
  expect(stepOf(7)).toBe(1);
  expect(ticksOf(10e9)).toEqual([0, 2e9, 4e9, 6e9, 8e9, 10e9]);
});
