import { expect, test } from "vitest";
import { endsShown, networkOf, type Plan } from "../src/run/network";

const QDISCS = [
  { kind: "netem", delay_ns: 5_000_000 },
  { kind: "netem", rate_bit_per_s: 10e6 },
];

function plan(): Plan {
  const port = { name: "eth0", addresses: ["10.0.0.0/31"], egress: { qdiscs: QDISCS }, wire_delay_ns: 1_000_000 };
  const nodes = ["a", "b"].map((name) => ({ name, guest: "guest0", bridge: null, interfaces: [port] }));
  const ends = nodes.map((node) => ({ node: node.name, interface: "eth0" }));
  const rest = { guests: [], processes: [], course: [], measure: null, checks: [], stop_after_ns: null };
  return { lab: "x", nodes, links: [{ name: "a:eth0--b:eth0", ends }], ...rest };
}

test("an end of a link has the rate and the delay that the plan gives it, the wire's among them", () => {
  const [link] = networkOf(plan()).links;
  expect(link!.ends[0]).toEqual({ node: "a", interface: "eth0", rateBitPerS: 10e6, delayNs: 6_000_000 });
});

test("a link that was changed has what the run tells of it", () => {
  const qdiscs = [{ kind: "hfsc", rate_bit_per_s: 5e6 }];
  const end = { node: "a", interface: "eth0", egress: { qdiscs }, wire_delay_ns: 0 };
  const shown = endsShown([{ link: "a:eth0--b:eth0", ends: [end, { ...end, node: "b", egress: { qdiscs: [] } }] }]);
  expect(shown.get("a:eth0--b:eth0")!.map(({ rateBitPerS }) => rateBitPerS)).toEqual([5e6, null]);
});
