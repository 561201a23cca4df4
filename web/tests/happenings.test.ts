import { describe, expect, test } from "vitest";
import { bands, emptyPicture, pictureAt, readEvents, take, type Happening } from "../src/run/happenings";

const started = (t_ns: number, process: string): Happening => ({
  kind: "event",
  event: { t_ns, kind: "started", process, node: "a" },
});

const STORY: Happening[] = [
  { kind: "state", state: "running" },
  { kind: "clock", change: { virtual_s: 0, host_s: 0, tdf: 10, reason: "start" } },
  started(10, "ping"),
  { kind: "event", event: { t_ns: 30, kind: "began", fault: "cut", what: "partition a" } },
  { kind: "event", event: { t_ns: 40, kind: "link-changed", link: "a--b", what: "down", up: false } },
  { kind: "event", event: { t_ns: 50, kind: "exited", process: "ping", node: "a", status: 1, expected: false } },
  // Of another guest, heard late.
  started(20, "late"),
  { kind: "event", event: { t_ns: 60, kind: "undone", fault: "cut" } },
  { kind: "event", event: { t_ns: 70, kind: "link-changed", link: "a--b", what: "up", up: true } },
  { kind: "state", state: "finished" },
];

describe("the picture of a run", () => {
  test("of now is what all happenings one after the other make of it", () => {
    const told = STORY.reduce(take, emptyPicture());
    expect(pictureAt(STORY, Infinity)).toEqual(told);
    expect(told.state).toBe("finished");
    expect(told.faults.size).toBe(0);
    expect(told.links.get("a--b")).toEqual({ up: true, told: "up" });
    expect(told.processes.get("a/ping")).toMatchObject({ state: "failed", told: "status 1" });
  });

  test("of an instant knows nothing of what came later, in whatever order it was heard", () => {
    const then = pictureAt(STORY, 45);
    expect(then.state).toBe("running");
    expect([...then.faults.values()]).toEqual(["partition a"]);
    expect(then.links.get("a--b")?.up).toBe(false);
    expect(then.processes.get("a/ping")?.state).toBe("running");
    expect(then.processes.has("a/late")).toBe(true);
    expect(pictureAt(STORY, 15).processes.has("a/late")).toBe(false);
  });

  test("begins anew where the run does", () => {
    const again: Happening = { kind: "again", why: "out of bounds", tdf: 20 };
    expect(pictureAt([...STORY, again], Infinity)).toEqual(emptyPicture());
  });
});

test("faults and links that are down are bands, open as long as nothing ends them", () => {
  const events = STORY.flatMap((one) => (one.kind === "event" ? [one.event] : []));
  expect(bands(events).map(({ name, beginNs, endNs }) => [name, beginNs, endNs])).toEqual([
    ["cut", 30, 60],
    ["a--b", 40, 70],
  ]);
  expect(bands(events.slice(0, 4)).map((band) => band.endNs)).toEqual([null, null]);
});

test("lines that are no events are left out, whatever a guest has written", () => {
  const text = '{"t_ns": 1, "kind": "ready"}\nnull\n{"t_ns": "x", "kind": 3}\n[]\n{"t_ns": 2, "ki';
  expect(readEvents(text)).toEqual([{ t_ns: 1, kind: "ready" }]);
});
