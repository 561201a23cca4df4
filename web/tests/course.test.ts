import { describe, expect, test } from "vitest";
import type { Drawing } from "../src/api/types";
import { courseOf, endOf } from "../src/run/course";
import { changes, type RunEvent } from "../src/run/happenings";

const program = { node: "a", argv: ["work"], start_ns: 0 };
const DRAWING: Drawing = {
  nodes: [],
  links: [],
  guests: [],
  programs: [
    { ...program, name: "web", begin_ns: 0, end_ns: null, is_earliest: false },
    { ...program, name: "ping", begin_ns: 10, end_ns: 60, is_earliest: true },
    { ...program, name: "after-ever", begin_ns: null, end_ns: null, is_earliest: true },
  ],
  course: [
    { name: "cut", link: "", at_ns: 40, is_earliest: false, for_ns: 10, what: "partition a" },
    { name: "", link: "a--b", at_ns: 20, is_earliest: false, for_ns: null, what: "rate 5Mbit" },
    { name: "", link: "a--b", at_ns: 90, is_earliest: false, for_ns: null, what: "rate 9Mbit" },
  ],
  interfaces_period_ns: null,
  captures: [],
  checks: [],
  stop_after_ns: null,
  forecast: { virtual_s: null, is_earliest: false, host_s: null, hint: "", link: "", load: 0, tdf: 1 },
};

const EVENTS: RunEvent[] = [
  { t_ns: 1, kind: "started", process: "web", node: "a" },
  { t_ns: 12, kind: "started", process: "ping", node: "a" },
  { t_ns: 21, kind: "link-changed", link: "a--b", what: "rate 5Mbit", up: true },
  { t_ns: 30, kind: "began", fault: "hand1", what: "pause a" },
  { t_ns: 40, kind: "began", fault: "cut", what: "partition a" },
  { t_ns: 50, kind: "undone", fault: "cut", what: "partition a" },
  { t_ns: 66, kind: "exited", process: "ping", node: "a", status: 1, expected: false },
];

describe("the course of a run", () => {
  test("is what is planned before anything has happened, a lane for each thing", () => {
    const lanes = courseOf(DRAWING, []);
    expect(lanes.map(({ kind, name }) => [kind, name])).toEqual([
      ["program", "a/web"],
      ["program", "a/ping"],
      ["program", "a/after-ever"],
      ["change", "a--b"],
      ["fault", "cut"],
    ]);
    expect(lanes.map((lane) => lane.planned.map((span) => [span.beginNs, span.endNs]))).toEqual([
      [[0, null]],
      [[10, 60]],
      [],
      [
        [20, 20],
        [90, 90],
      ],
      [[40, 50]],
    ]);
    expect(lanes.every((lane) => lane.happened.length === 0)).toBe(true);
  });

  test("has what happened beside it, with what was done by hand", () => {
    const happened = new Map(courseOf(DRAWING, EVENTS).map((lane) => [lane.name, lane.happened]));
    expect(happened.get("a/web")).toEqual([{ beginNs: 1, endNs: null, told: "", isBad: false }]);
    expect(happened.get("a/ping")).toEqual([{ beginNs: 12, endNs: 66, told: "status 1", isBad: true }]);
    expect(happened.get("a--b")).toEqual([{ beginNs: 21, endNs: 21, told: "rate 5Mbit", isBad: false }]);
    expect(happened.get("cut")).toEqual([{ beginNs: 40, endNs: 50, told: "partition a", isBad: false }]);
    expect(happened.get("hand1")).toEqual([{ beginNs: 30, endNs: null, told: "pause a", isBad: false }]);
  });

  test("ends where it is planned to, later if the run has come further, and at its end when it is over", () => {
    const lanes = courseOf(DRAWING, EVENTS);
    expect(endOf(lanes, 30, { isOver: false, foreseenNs: 0 })).toBe(90);
    expect(endOf(lanes, 30, { isOver: false, foreseenNs: 120 })).toBe(120);
    expect(endOf(lanes, 200, { isOver: false, foreseenNs: 120 })).toBe(200);
    expect(endOf(lanes, 66, { isOver: true, foreseenNs: 120 })).toBe(66);
    expect(endOf([], 0, { isOver: false, foreseenNs: 0 })).toBe(1);
  });

  test("a program that is started again has a span for each life, and one that nobody planned a lane", () => {
    const again = [...EVENTS, { t_ns: 70, kind: "started", process: "ping", node: "a" }];
    expect(courseOf(DRAWING, again)[1]!.happened.map((span) => span.endNs)).toEqual([66, null]);
    expect(courseOf(null, again).map((lane) => lane.name)).toEqual(["a/web", "a/ping", "a--b", "hand1", "cut"]);
  });
});

test("a link that was changed and stayed up is an instant, and none that went down", () => {
  const down = { t_ns: 80, kind: "link-changed", link: "a--b", what: "down", up: false };
  expect(changes([...EVENTS, down]).map(({ what, beginNs, endNs }) => [what, beginNs, endNs])).toEqual([
    ["rate 5Mbit", 21, 21],
  ]);
});
