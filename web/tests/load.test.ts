import { expect, test } from "vitest";
import { loadOf, loadOfRecord, Looks } from "../src/run/load";

const FIRST = { name: "ws1", guests: ["a", "b"], nodes: [], isLost: false };
const OTHER = { name: "ws2", guests: ["c"], nodes: [], isLost: false };

const guest = (name: string, busyS: number, waitedHostS: number | null) => ({
  name,
  machine: null,
  busy_s: busyS,
  waited_host_s: waitedHostS,
});

const status = (hostS: number, virtualS: number, ...guests: ReturnType<typeof guest>[]) => ({
  clock: {
    host_s: hostS,
    virtual_s: virtualS,
    tdf: 1,
    held: false,
    drive: "work",
    steered_by: "",
    max_speed: null,
  },
  guests,
});

test("a machine works as its busiest guest, and waits as the one that waits least", () => {
  const before = { hostS: 10, virtualS: 5, guests: [guest("a", 1, 2), guest("b", 1, 9), guest("c", 0, 0)] };
  const after = { hostS: 20, virtualS: 7, guests: [guest("a", 2.5, 3), guest("b", 1, 19), guest("c", 0.2, 9)] };
  expect(loadOf(FIRST, before, after)).toEqual({ busy: 0.75, waits: 0.1 });
  expect(loadOf(OTHER, before, after)).toEqual({ busy: expect.closeTo(0.1), waits: 0.9 });
});

test("what is not known is not told: no guests, no time, nothing told of waiting", () => {
  const nothing = { hostS: 0, virtualS: 0, guests: [] };
  expect(loadOf(FIRST, nothing, nothing)).toEqual({ busy: null, waits: null });
  const look = { hostS: 2, virtualS: 1, guests: [guest("c", 1, null)] };
  expect(loadOf(OTHER, nothing, look)).toEqual({ busy: 1, waits: null });
});

test("of a run that goes on the last seconds count, and a held clock changes nothing", () => {
  const looks = new Looks();
  // Idle for ten seconds, then at work for five.
  for (let s = 1; s <= 10; s++) looks.note(status(s, s, guest("c", 0, s)));
  for (let s = 11; s <= 15; s++) looks.note(status(s, s, guest("c", s - 10, 10)));
  expect(looks.of(OTHER)).toEqual({ busy: 1, waits: 0 });
  looks.note(status(40, 15, guest("c", 5, 35)));
  expect(looks.of(OTHER)).toEqual({ busy: 1, waits: 0 });
  expect(looks.speed).toBe(1);
  // Nor does it count when it goes on.
  looks.note(status(42, 16, guest("c", 5.5, 36)));
  expect(looks.of(OTHER)).toEqual({ busy: 0.5, waits: 0.5 });
  expect(looks.speed).toBe(0.5);
  // It is made again, from its beginning.
  looks.note(status(1, 1, guest("c", 0.5, 0.25)));
  expect(looks.of(OTHER)).toEqual({ busy: 0.5, waits: 0.25 });
  expect(new Looks().speed).toBeNull();
});

test("of a run that is over the whole counts, as its record has it", () => {
  const record = {
    time: { drive: "work", tdf: 2, virtual_s: 4, host_s: 8 },
    guests: [
      { name: "a", fidelity: { busy: 0.5 }, waits: { waited_host_s: 2 } },
      { name: "b", fidelity: { busy: 0.25 }, waits: { waited_host_s: 6 } },
      { name: "c", fidelity: null, waits: null },
    ],
  };
  expect(loadOfRecord(FIRST, record)).toEqual({ busy: 0.5, waits: 0.25 });
  expect(loadOfRecord(OTHER, record)).toEqual({ busy: null, waits: null });
});
