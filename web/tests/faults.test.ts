import { expect, test } from "vitest";
import { faultsAt, linkFault, nodeFault, partitionFault, type FaultShown } from "../src/run/faults";

test("a node suffers a fault for a while, or until it is undone; a reboot has no duration", () => {
  expect(nodeFault("pause", "db1", {}, " 3s ")).toEqual({ pause: "db1", for: "3s" });
  expect(nodeFault("crash", "db1", {}, "")).toEqual({ crash: "db1" });
  expect(nodeFault("reboot", "db1", {}, "3s")).toEqual({ reboot: "db1" });
  expect(nodeFault("pause", "db1", {}, "3s", " 10s ")).toEqual({ pause: "db1", for: "3s", at: "10s" });
});

test("of the fields of a fault those count that are filled in, and none that are of another one", () => {
  const values = { errors: " 5% ", delay: "", read_only: true, full: false, jump: "+2s" };
  expect(nodeFault("disk", "db*", values, "5s")).toEqual({
    disk: { node: "db*", errors: "5%", read_only: true },
    for: "5s",
  });
  expect(nodeFault("clock", "db1", values, "", "9s")).toEqual({ clock: { node: "db1", jump: "+2s" }, at: "9s" });
});

test("a partition is of the lists of nodes that its shape takes", () => {
  expect(partitionFault("groups", ["a, b", "", " c,"], "")).toEqual({ partition: [["a", "b"], ["c"]] });
  expect(partitionFault("one_way", ["a", "b, c"], "2s", "1s")).toEqual({
    partition: { from: ["a"], to: ["b", "c"] },
    for: "2s",
    at: "1s",
  });
  expect(partitionFault("halves", ["db*", "left over"], "")).toEqual({ partition: { halves: ["db*"] } });
});

test("settings of a link become fields of a fault, also below each other and in either order", () => {
  const both = { link: "a--b", for: "5s", loss: "30%", a_to_b: { delay: { mean: "20ms", jitter: "2ms" } } };
  const delay = ["a_to_b.delay", "20ms"] as const;
  const jitter = ["a_to_b.delay.jitter", "2ms"] as const;
  expect(linkFault("a--b", [["loss", "30%"], delay, jitter], "5s")).toEqual(both);
  expect(linkFault("a--b", [["loss", "30%"], jitter, delay], "5s")).toEqual(both);
  expect(linkFault("a--b", [["down", "true"]], "1s")).toEqual({ link: "a--b", for: "1s", down: true });
  expect(linkFault("a--b", [["loss", "1%"]], "1s", "9s")).toEqual({ link: "a--b", for: "1s", loss: "1%", at: "9s" });
});

test("at an instant there are the faults that had begun, as they were then", () => {
  const fault = (name: string, began_ns: number | null, ended_ns: number | null) =>
    ({ name, began_ns, ended_ns, state: ended_ns ? "over" : began_ns ? "lasting" : "waiting" }) as FaultShown;
  const all = [fault("over", 10, 20), fault("lasting", 30, null), fault("waiting", null, null)];
  const told = (ns: number) => faultsAt(all, ns).map(({ name, state, ended_ns }) => [name, state, ended_ns]);
  expect(told(9)).toEqual([]);
  expect(told(10)).toEqual([["over", "lasting", null]]);
  expect(told(20)).toEqual([["over", "over", 20]]);
  expect(told(30)).toEqual([
    ["over", "over", 20],
    ["lasting", "lasting", null],
  ]);
});
