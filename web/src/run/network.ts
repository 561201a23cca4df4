// The network of a plan, as far as it is drawn: nodes, links, and how fast each end of a link may send.

interface Qdisc {
  rate_bit_per_s?: number | null;
  delay_ns?: number;
}

export interface Plan {
  lab: string;
  nodes: {
    name: string;
    guest: string;
    bridge: unknown;
    interfaces: { name: string; addresses: string[]; egress: { qdiscs: Qdisc[] } | null; wire_delay_ns: number }[];
    routes?: unknown[];
  }[];
  links: { name: string; ends: { node: string; interface: string }[] }[];
  guests: { name: string }[];
  processes: {
    name: string;
    node: string;
    argv: string[];
    start_ns: number | null;
    stop_ns: number | null;
    after: unknown[];
  }[];
  course: Record<string, unknown>[];
  measure: {
    interfaces_period_ns: number | null;
    captures: { node: string; interface: string; file: string }[];
  } | null;
  checks: { text: string }[];
  stop_after_ns: number | null;
}

export type Kind = "host" | "router" | "switch";

export interface End {
  node: string;
  interface: string;
  rateBitPerS: number | null;
  delayNs: number;
}

export interface NetNode {
  name: string;
  kind: Kind;
  addresses: string[];
}

export interface NetLink {
  name: string;
  ends: [End, End];
}

export interface Network {
  nodes: NetNode[];
  links: NetLink[];
}

interface Egress {
  qdiscs: Qdisc[];
}

/** What an end of a link does to the packets that leave by it: its rate, null if there is none, and its delay. */
function pace(egress: Egress | null | undefined, wireDelayNs: number): Pick<End, "rateBitPerS" | "delayNs"> {
  const qdiscs = egress?.qdiscs ?? [];
  const rates = qdiscs.map((one) => one.rate_bit_per_s).filter((rate): rate is number => typeof rate === "number");
  const delayNs = qdiscs.reduce((sum, one) => sum + (one.delay_ns ?? 0), wireDelayNs);
  return { rateBitPerS: rates.length ? Math.min(...rates) : null, delayNs };
}

export function networkOf(plan: Plan): Network {
  const interfaces = new Map<string, Plan["nodes"][number]["interfaces"][number]>();
  for (const node of plan.nodes) for (const one of node.interfaces) interfaces.set(`${node.name}:${one.name}`, one);
  const end = ({ node, interface: name }: { node: string; interface: string }): End => {
    const found = interfaces.get(`${node}:${name}`);
    return { node, interface: name, ...pace(found?.egress, found?.wire_delay_ns ?? 0) };
  };
  return {
    nodes: plan.nodes.map((node) => ({
      name: node.name,
      kind: node.bridge ? "switch" : node.interfaces.length > 1 ? "router" : "host",
      addresses: node.interfaces.flatMap((one) => one.addresses),
    })),
    links: plan.links
      .filter((link) => link.ends.length === 2)
      .map((link) => ({ name: link.name, ends: [end(link.ends[0]!), end(link.ends[1]!)] })),
  };
}

export interface ShownLink {
  link: string;
  ends: { node: string; interface: string; egress: unknown; wire_delay_ns: number }[];
}

/** The ends of links as a run tells them, by the names of the links: changes and faults make others of them than planned. */
export function endsShown(shown: readonly ShownLink[]): Map<string, End[]> {
  return new Map(
    shown.map(({ link, ends }) => [
      link,
      ends.map((end) => ({
        node: end.node,
        interface: end.interface,
        ...pace(end.egress as Egress, end.wire_delay_ns),
      })),
    ]),
  );
}
