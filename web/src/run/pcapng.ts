// Captures (pcapng, as draft-ietf-opsawg-pcapng has it) → packets as a table shows them. Pure. What a guest has written may
// be anything: a file that breaks off, or lies about its lengths, gives the packets up to there.

export interface Packet {
  number: number;
  tS: number;
  source: string;
  destination: string;
  protocol: string;
  ports: number[];
  length: number;
  info: string;
  bytes: Uint8Array;
  /** What TCP or UDP carries, as far as it was captured, and how long it is. */
  payload: Uint8Array;
  payloadLength: number;
  tcp?: { sequence: number; isBegin: boolean };
}

const SECTION = 0x0a0d0d0a;
const INTERFACE = 1;
const ENHANCED = 6;
const PACKETS_MAX = 200_000;
const BLOCK_BYTES_MAX = 16 << 20;

export function readCapture(file: Uint8Array): Packet[] {
  const reader = new CaptureReader();
  reader.take(file);
  return reader.packets;
}

/** Reads a capture that comes in pieces, which may end anywhere. */
export class CaptureReader {
  readonly packets: Packet[] = [];
  private rest = new Uint8Array();
  private isLittle = true;
  private perSecond: number[] = [];
  private isBroken = false;

  take(piece: Uint8Array): void {
    const file = new Uint8Array(this.rest.length + piece.length);
    file.set(this.rest);
    file.set(piece, this.rest.length);
    const view = new DataView(file.buffer);
    let at = 0;
    while (!this.isBroken && at + 12 <= file.length && this.packets.length < PACKETS_MAX) {
      const kind = view.getUint32(at, this.isLittle);
      if (kind === SECTION) {
        this.isLittle = view.getUint32(at + 8, true) === 0x1a2b3c4d;
        this.perSecond = [];
      }
      const length = view.getUint32(at + 4, this.isLittle);
      this.isBroken = length < 12 || length % 4 > 0 || length > BLOCK_BYTES_MAX;
      if (this.isBroken || at + length > file.length) break;
      this.block(view, kind, at, length);
      at += length;
    }
    this.rest = file.slice(at);
  }

  private block(view: DataView, kind: number, at: number, length: number): void {
    const { isLittle, packets } = this;
    if (kind === INTERFACE) this.perSecond.push(resolution(view, at + 16, at + length - 4, isLittle));
    if (kind !== ENHANCED || length < 32) return;
    const captured = view.getUint32(at + 20, isLittle);
    this.isBroken = captured > length - 32;
    if (this.isBroken) return;
    const ticks = view.getUint32(at + 12, isLittle) * 2 ** 32 + view.getUint32(at + 16, isLittle);
    const tS = ticks / (this.perSecond[view.getUint32(at + 8, isLittle)] ?? 1e6);
    const bytes = new Uint8Array(view.buffer, at + 28, captured);
    packets.push({
      number: packets.length + 1,
      tS,
      length: view.getUint32(at + 24, isLittle),
      bytes,
      ...decoded(bytes),
    });
  }
}

/** Ticks per second of an interface: option if_tsresol, microseconds without it. */
function resolution(view: DataView, begin: number, end: number, isLittle: boolean): number {
  for (let at = begin; at + 4 <= end;) {
    const [code, length] = [view.getUint16(at, isLittle), view.getUint16(at + 2, isLittle)];
    if (code === 0) break;
    if (code === 9 && length === 1 && at + 5 <= end) {
      const value = view.getUint8(at + 4);
      return value & 0x80 ? 2 ** (value & 0x7f) : 10 ** value;
    }
    at += 4 + length + ((4 - (length % 4)) % 4);
  }
  return 1e6;
}

type Decoded = Omit<Packet, "number" | "tS" | "length" | "bytes">;

const NOTHING = { payload: new Uint8Array(), payloadLength: 0 };

const FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];

function decoded(bytes: Uint8Array): Decoded {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const plain: Decoded = { source: "", destination: "", protocol: "Ethernet", ports: [], info: "", ...NOTHING };
  const ethernet = () => ({ ...plain, source: hardware(bytes, 6), destination: hardware(bytes, 0) });
  try {
    let at = 12;
    let type = view.getUint16(at);
    while (type === 0x8100 || type === 0x88a8) type = view.getUint16((at += 4));
    at += 2;
    if (type === 0x0806)
      return { ...ethernet(), protocol: "ARP", info: view.getUint16(at + 6) === 1 ? "who has" : "is at" };
    if (type === 0x0800) {
      const address = (n: number) => `${bytes[n]}.${bytes[n + 1]}.${bytes[n + 2]}.${bytes[n + 3]}`;
      const header = (view.getUint8(at) & 15) * 4;
      const ip = { ...plain, protocol: "IPv4", source: address(at + 12), destination: address(at + 16) };
      if (view.getUint16(at + 6) & 0x1fff) return { ...ip, info: "fragment" };
      const size = view.getUint16(at + 2) - header;
      return transport(view, at + header, view.getUint8(at + 9), size, ip);
    }
    if (type === 0x86dd) {
      const address = (begin: number) => shortened(Array.from({ length: 8 }, (_, n) => view.getUint16(begin + 2 * n)));
      const ip = { ...plain, protocol: "IPv6", source: address(at + 8), destination: address(at + 24) };
      return transport(view, at + 40, view.getUint8(at + 6), view.getUint16(at + 4), ip);
    }
  } catch {
    return { ...ethernet(), info: "cut off" };
  }
  return ethernet();
}

/** An address of Ethernet, as far as it was captured. */
function hardware(bytes: Uint8Array, begin: number): string {
  return [...bytes.subarray(begin, begin + 6)].map((one) => one.toString(16).padStart(2, "0")).join(":");
}

/** Which flags of TCP are set, for each byte that may say so. */
const FLAGGED = Array.from({ length: 256 }, (_, byte) => FLAGS.filter((_, bit) => byte & (1 << bit)).join(" "));

function transport(view: DataView, at: number, protocol: number, size: number, ip: Decoded): Decoded {
  switch (protocol) {
    case 1:
    case 58: {
      const type = view.getUint8(at);
      const echo = {
        8: "echo request",
        0: "echo reply",
        128: "echo request",
        129: "echo reply",
        3: "unreachable",
        11: "time exceeded",
      }[type];
      const info = echo?.startsWith("echo") ? `${echo}, seq ${view.getUint16(at + 6)}` : (echo ?? `type ${type}`);
      return { ...ip, protocol: protocol === 1 ? "ICMP" : "ICMPv6", info };
    }
    case 6: {
      const ports = [view.getUint16(at), view.getUint16(at + 2)];
      const flags = FLAGGED[view.getUint8(at + 13)];
      const header = (view.getUint8(at + 12) >> 4) * 4;
      const length = Math.max(0, size - header);
      const tcp = { sequence: view.getUint32(at + 4), isBegin: Boolean(view.getUint8(at + 13) & 2) };
      const info = `${ports.join(" → ")} [${flags}] seq ${view.getUint32(at + 4)} ack ${view.getUint32(at + 8)} len ${length}`;
      return { ...ip, protocol: "TCP", ports, info, tcp, ...carried(view, at + header, length) };
    }
    case 17: {
      const ports = [view.getUint16(at), view.getUint16(at + 2)];
      const length = Math.max(0, view.getUint16(at + 4) - 8);
      const info = `${ports.join(" → ")} len ${length}`;
      return { ...ip, protocol: "UDP", ports, info, ...carried(view, at + 8, length) };
    }
  }
  return { ...ip, info: `protocol ${protocol}` };
}

/** What comes behind the headers; a frame may have padding behind it, and a capture less than it. */
function carried(view: DataView, at: number, length: number): Pick<Packet, "payload" | "payloadLength"> {
  const begin = Math.min(at, view.byteLength);
  const end = Math.min(at + length, view.byteLength);
  return { payload: new Uint8Array(view.buffer, view.byteOffset + begin, end - begin), payloadLength: length };
}

/** An IPv6 address of these groups, as people write it. */
export function shortened(groups: number[]): string {
  const text = groups.map((one) => one.toString(16)).join(":");
  const zeros = [...text.matchAll(/(?:^|:)0(?::0)+(?=:|$)/g)].sort((a, b) => b[0].length - a[0].length)[0];
  if (!zeros) return text;
  const rest = text.slice(zeros.index + zeros[0].length).replace(/^:/, "");
  return `${text.slice(0, zeros.index)}::${rest}`;
}

export interface DumpedRow {
  offset: string;
  /** What people read of each byte: hexadecimal, and as a character. */
  bytes: { at: number; hex: string; character: string }[];
}

/** Bytes as people read them, sixteen in a row. */
export function dump(bytes: Uint8Array): DumpedRow[] {
  return Array.from({ length: Math.ceil(bytes.length / 16) }, (_, row) => ({
    offset: (row * 16).toString(16).padStart(4, "0"),
    bytes: [...bytes.subarray(row * 16, row * 16 + 16)].map((one, n) => ({
      at: row * 16 + n,
      hex: one.toString(16).padStart(2, "0"),
      character: one >= 32 && one < 127 ? String.fromCharCode(one) : ".",
    })),
  }));
}
