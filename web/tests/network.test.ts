import { expect, test } from "vitest";
import { endsShown, networkOf } from "../src/run/network";

test("a link has at each end the rate and the delay that the server has drawn", () => {
  const ends = ["a", "b"].map((node) => ({ node, interface: "eth0", rate_bit_per_s: 10e6, delay_ns: 6_000_000 }));
  const nodes = ["a", "b"].map((name) => ({ name, kind: "ovs", addresses: [], guest: "guest0" }));
  const rest = { guests: [], programs: [], course: [], captures: [], checks: [] };
  const forecast = { virtual_s: null, is_earliest: false, host_s: null, hint: "", link: "", load: 0, tdf: 1 };
  const network = networkOf({
    nodes,
    links: [{ name: "a:eth0--b:eth0", ends }],
    ...rest,
    interfaces_period_ns: null,
    stop_after_ns: null,
    forecast,
  });
  expect(network.nodes).toEqual(nodes);
  expect(network.links[0]!.ends[0]).toEqual({ node: "a", interface: "eth0", rateBitPerS: 10e6, delayNs: 6_000_000 });
});

test("a link that was changed has what the run tells of it", () => {
  const qdiscs = [{ kind: "hfsc", rate_bit_per_s: 5e6 }];
  const end = { node: "a", interface: "eth0", egress: { qdiscs }, wire_delay_ns: 0 };
  const shown = endsShown([{ link: "a:eth0--b:eth0", ends: [end, { ...end, node: "b", egress: { qdiscs: [] } }] }]);
  expect(shown.get("a:eth0--b:eth0")!.map(({ rateBitPerS }) => rateBitPerS)).toEqual([5e6, null]);
});
