import { expect, test } from "vitest";
import { machinesOf } from "../src/run/machines";

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
