// The conversation that a packet belongs to: of TCP the bytes in the order in which they were sent, each once, as a program
// reads them; of UDP the datagrams as they passed. What was not captured is said and not invented. Pure.
import type { Packet } from "./pcapng";

export interface Piece {
  /** From who sent the first packet that was seen. */
  isFirst: boolean;
  tS: number;
  bytes: Uint8Array;
  /** Bytes before these that were sent and are not here: lost before the capture, or cut off by its snaplen. */
  missing: number;
}

export interface Stream {
  ends: [string, string];
  pieces: Piece[];
  /** Whether there is more than is shown. */
  isCut: boolean;
}

const BYTES_MAX = 1 << 20;

class Direction {
  next: number | null = null;
  private kept: Packet[] = [];
  private cut = 0;

  constructor(private readonly tell: (packet: Packet, bytes: Uint8Array, missing: number) => void) {}

  take(packet: Packet): void {
    const { sequence, isBegin } = packet.tcp!;
    if (this.next === null || isBegin) this.next = (sequence + (isBegin ? 1 : 0)) >>> 0;
    if (!packet.payloadLength) return;
    this.kept.push(packet);
    this.pass(0);
  }

  /** What comes behind a gap that nothing has filled. */
  end(): void {
    while (this.kept.length) this.pass(Math.min(...this.kept.map((packet) => this.ahead(packet))));
  }

  private ahead(packet: Packet): number {
    return (packet.tcp!.sequence - this.next!) | 0;
  }

  /** Passes on what follows, behind a gap of so many bytes. */
  private pass(gap: number): void {
    for (;;) {
      const place = this.kept.findIndex((packet) => this.ahead(packet) <= gap);
      if (place < 0) return;
      const [packet] = this.kept.splice(place, 1);
      const ahead = this.ahead(packet!);
      const skip = Math.max(0, -ahead);
      const missing = Math.max(0, ahead);
      gap = 0;
      if (skip >= packet!.payloadLength) continue;
      this.next = (this.next! + missing + packet!.payloadLength - skip) >>> 0;
      const bytes = packet!.payload.subarray(skip);
      this.tell(packet!, bytes, missing + this.cut);
      this.cut = packet!.payloadLength - Math.max(skip, packet!.payload.length);
    }
  }
}

export function hasStream(packet: Packet): boolean {
  return packet.ports.length === 2;
}

export function streamOf(packets: readonly Packet[], one: Packet): Stream {
  const from = (packet: Packet) => `${packet.source} ${packet.ports[0]}`;
  const to = (packet: Packet) => `${packet.destination} ${packet.ports[1]}`;
  const ours = packets.filter(
    (packet) =>
      packet.protocol === one.protocol &&
      ((from(packet) === from(one) && to(packet) === to(one)) ||
        (from(packet) === to(one) && to(packet) === from(one))),
  );
  const first = ours[0] ?? one;
  const stream: Stream = { ends: [from(first), to(first)], pieces: [], isCut: false };
  let length = 0;
  const tell = (packet: Packet, bytes: Uint8Array, missing: number) => {
    const isFirst = from(packet) === stream.ends[0];
    length += bytes.length;
    stream.isCut ||= length > BYTES_MAX;
    if (!stream.isCut) stream.pieces.push({ isFirst, tS: packet.tS, bytes, missing });
  };
  const directions = new Map(stream.ends.map((end) => [end, new Direction(tell)]));
  for (const packet of ours) {
    if (packet.tcp) directions.get(from(packet))?.take(packet);
    else if (packet.payload.length) tell(packet, packet.payload, 0);
  }
  for (const direction of directions.values()) direction.end();
  return stream;
}

/** Bytes as text: what is no character of ASCII, and no end of a line, is a dot. */
export function asText(bytes: Uint8Array): string {
  return Array.from(bytes, (one) =>
    one === 10 || one === 9 || (one >= 32 && one < 127) ? String.fromCharCode(one) : one === 13 ? "" : ".",
  ).join("");
}
