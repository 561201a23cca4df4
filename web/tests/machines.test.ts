import { expect, test } from "vitest";
import { busiest, guestsOf, machinesOf } from "../src/run/machines";

const NODES = [
  { name: "a", guest: "g0" },
  { name: "b", guest: "g1" },
  { name: "c", guest: "g0" },
  { name: "d", guest: "g2" },
  { name: "switch" },
];

test("each machine has the nodes of its guests, and the one whose loss ended the run is told", () => {
  const guests = [
    { name: "g0", machine: "ws10" },
    { name: "g1", machine: "ws2" },
    { name: "g2", machine: "ws10" },
  ];
  expect(machinesOf({ guests, lost_machine: "ws2" }, NODES)).toEqual([
    { name: "ws2", guests: ["g1"], nodes: ["b"], isLost: true },
    { name: "ws10", guests: ["g0", "g2"], nodes: ["a", "c", "d"], isLost: false },
  ]);
});

test("a run on one machine, or one that is not known yet, has none", () => {
  expect(machinesOf(null, NODES)).toEqual([]);
  expect(machinesOf({ guests: [{ name: "g0", machine: null }, { name: "g1" }] }, NODES)).toEqual([]);
});

test("a run on one machine has its guests, if it has several", () => {
  const guests = [{ name: "g10" }, { name: "g0", machine: null }];
  expect(guestsOf({ guests }, NODES)).toEqual([
    { name: "g0", guests: ["g0"], nodes: ["a", "c"], isLost: false },
    { name: "g10", guests: ["g10"], nodes: [], isLost: false },
  ]);
  expect(guestsOf({ guests: [{ name: "g0" }] }, NODES)).toEqual([]);
  expect(
    guestsOf(
      {
        guests: [
          { name: "g0", machine: "ws1" },
          { name: "g1", machine: "ws1" },
        ],
      },
      NODES,
    ),
  ).toEqual([]);
  expect(guestsOf(null, NODES)).toEqual([]);
});

test("of many the busiest are shown, of a few all in their order", () => {
  const busy = (name: string) => ({ a: 0.1, b: null, c: 0.9 })[name] ?? null;
  expect(busiest(["a", "b", "c"], 2, busy)).toEqual(["c", "a"]);
  expect(busiest(["a", "b", "c"], 3, busy)).toEqual(["a", "b", "c"]);
});
