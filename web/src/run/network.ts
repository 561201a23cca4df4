// The network of a drawing, as the server makes it: nodes, links, and how fast each end of a link may send.
import type { Drawing } from "../api/types";

interface Qdisc {
  rate_bit_per_s?: number | null;
  delay_ns?: number;
}

export interface End {
  node: string;
  interface: string;
  rateBitPerS: number | null;
  delayNs: number;
}

export interface NetLink {
  name: string;
  ends: [End, End];
}

export interface Network {
  nodes: Drawing["nodes"];
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

export function networkOf(drawing: Drawing): Network {
  const end = (one: Drawing["links"][number]["ends"][number]): End => ({
    node: one.node,
    interface: one.interface,
    rateBitPerS: one.rate_bit_per_s,
    delayNs: one.delay_ns,
  });
  return {
    nodes: drawing.nodes,
    links: drawing.links.map(({ name, ends }) => ({ name, ends: [end(ends[0]!), end(ends[1]!)] })),
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
