import { expect, test } from "vitest";
import {
  askedAs,
  faultOf,
  faultsAt,
  fieldsOf,
  gathered,
  linkFault,
  partitionFault,
  type FaultShown,
} from "../src/run/faults";

test("a node suffers a fault for a while, or until it is undone; a reboot has no duration", () => {
  expect(faultOf("pause", { whom: "db1", lasts: " 3s " })).toEqual({ pause: "db1", for: "3s" });
  expect(faultOf("crash", { whom: "db1", lasts: "" })).toEqual({ crash: "db1" });
  expect(faultOf("reboot", { whom: "db1", lasts: "3s" })).toEqual({ reboot: "db1" });
  expect(faultOf("pause", { whom: "db1", lasts: "3s", at: " 10s " })).toEqual({ pause: "db1", for: "3s", at: "10s" });
});

test("of the fields of a fault those count that are filled in, and none that are of another one", () => {
  const values = { errors: " 5% ", delay: "", read_only: true, full: false, jump: "+2s" };
  expect(faultOf("disk", { whom: "db*", values, lasts: "5s" })).toEqual({
    disk: { node: "db*", errors: "5%", read_only: true },
    for: "5s",
  });
  expect(faultOf("clock", { whom: "db1", values, at: "9s" })).toEqual({
    clock: { node: "db1", jump: "+2s" },
    at: "9s",
  });
});

test("a process is killed, and started again so long after, which is no duration", () => {
  expect(faultOf("kill", { whom: " db1/server ", values: { restart: "2s" }, lasts: "9s" })).toEqual({
    kill: "db1/server",
    restart: "2s",
  });
  expect(faultOf("kill", { whom: "db1/*", at: "5s" })).toEqual({ kill: "db1/*", at: "5s" });
});

test("a link goes down and up, for a while", () => {
  const values = { down: "100ms", up: "400ms" };
  expect(faultOf("flap", { whom: "a--b", values, lasts: "5s" })).toEqual({
    flap: { link: "a--b", down: "100ms", up: "400ms" },
    for: "5s",
  });
});

test("a load has the fields that go with what is sent, whatever else was filled in", () => {
  const values = { to: "web", http: "20/s", udp: "5000/s", size: "1000B", path: "/x", port: "" };
  const asked = { whom: "visitor", values, lasts: "2s" };
  expect(faultOf("load", asked)).toEqual({
    load: { from: "visitor", to: "web", http: "20/s", path: "/x" },
    for: "2s",
  });
  expect(faultOf("load", { ...asked, sent: "udp" })).toEqual({
    load: { from: "visitor", to: "web", udp: "5000/s", size: "1000B" },
    for: "2s",
  });
  expect(fieldsOf("load", "syn").map(({ name }) => name)).toEqual(["to", "syn", "port"]);
});

test("faults are drawn of kinds, for a while, on nodes that are listed", () => {
  const values = { every: "exponential 20s", for: "uniform 1s..5s", on: "db*, web", at_most: "" };
  expect(faultOf("random", { values, drawn: ["pause", "link"], lasts: "1min" })).toEqual({
    random: { every: "exponential 20s", for: "uniform 1s..5s", on: ["db*", "web"], of: ["pause", "link"] },
    for: "1min",
  });
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

test("of faults that were drawn together those are counted that are yet to come, if they are many", () => {
  const fault = (name: string, state: string) => ({ name, state }) as FaultShown;
  const few = ["hand2-1", "hand2-2", "own"].map((name) => fault(name, "waiting"));
  const many = ["hand1-2", "hand1-3-1", "hand1-3-2", "hand1-4"].map((name) => fault(name, "waiting"));
  const { shown, waiting } = gathered([fault("hand1-1", "lasting"), ...many, ...few]);
  expect(shown.map(({ name }) => name)).toEqual(["hand1-1", "hand2-1", "hand2-2", "own"]);
  expect([...waiting]).toEqual([["hand1", 4]]);
  expect(askedAs("a-b-1")).toBe("a-b");
});
