// When programs ran, from the events of a run. Pure.
import type { RunEvent } from "./happenings";

export interface Span {
  name: string;
  beginNs: number;
  endNs: number;
  isBad: boolean;
}

export function spansOf(events: readonly RunEvent[], nowNs: number): Span[] {
  const found: Span[] = [];
  const open = new Map<string, Span>();
  for (const event of events) {
    if (event.process === undefined) continue;
    const name = `${event.node}/${event.process}`;
    if (event.kind === "started") {
      const span = { name, beginNs: event.t_ns, endNs: nowNs, isBad: false };
      open.set(name, span);
      found.push(span);
    } else if (event.kind === "exited") {
      const span = open.get(name);
      if (span) {
        span.endNs = event.t_ns;
        span.isBad = event.expected === false;
      }
      open.delete(name);
    }
  }
  return found;
}
