// What a table of packets asks of a capture: so many of those that a filter keeps, from a place on, and the stream of one.
// The packets themselves stay where they were read, in a worker: of ten megabytes there may be a hundred thousand. Pure.
import { filterOf } from "./filter";
import { CaptureReader, type Packet } from "./pcapng";
import { streamOf, type Stream } from "./streams";

/** How many packets a table shows at once. */
export const SHOWN_MAX = 500;

export interface Asked {
  filter: string;
  /** Only those up to this instant of virtual time. */
  untilNs: number;
  /** How many of those are before the first that is shown. */
  first: number;
}

export interface Looked {
  total: number;
  found: number;
  shown: Packet[];
  /** What is wrong with the filter, which then keeps all; empty: nothing. */
  wrong: string;
}

export class Captured {
  private readonly reader = new CaptureReader();

  take(piece: Uint8Array): void {
    this.reader.take(piece);
  }

  look({ filter, untilNs, first }: Asked): Looked {
    const { packets } = this.reader;
    const { keeps, wrong } = read(filter);
    const found = packets.filter((packet) => packet.tS * 1e9 <= untilNs && keeps(packet));
    return {
      total: packets.length,
      found: found.length,
      shown: found.slice(first, first + SHOWN_MAX).map(alone),
      wrong,
    };
  }

  /** The stream of the packet with a number. */
  follow(number: number): Stream {
    const stream = streamOf(this.reader.packets, this.reader.packets[number - 1]!);
    return { ...stream, pieces: stream.pieces.map((piece) => ({ ...piece, bytes: piece.bytes.slice() })) };
  }
}

function read(filter: string): { keeps: (packet: Packet) => boolean; wrong: string } {
  try {
    return { keeps: filterOf(filter), wrong: "" };
  } catch (error) {
    return { keeps: () => true, wrong: (error as Error).message };
  }
}

/** A packet with bytes of its own, since whoever is sent a view of a buffer is sent all of that. */
function alone(packet: Packet): Packet {
  return { ...packet, bytes: packet.bytes.slice(), payload: packet.payload.slice() };
}
