// One packet → its headers, field by field, with where each is in its bytes. Pure. A packet that is cut off gives what is there.
import { shortened } from "./pcapng";

export interface Field {
  name: string;
  value: string;
  /** Its bytes in the packet: from, and up to but without. */
  begin: number;
  end: number;
}

export interface Layer {
  name: string;
  fields: Field[];
  begin: number;
  end: number;
}

const PROTOCOLS: Record<number, string> = { 1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 89: "OSPF" };
const TYPES: Record<number, string> = { 0x0800: "IPv4", 0x0806: "ARP", 0x86dd: "IPv6", 0x8100: "VLAN", 0x88a8: "VLAN" };
const FRAGMENT = 44;
const EXTENSIONS: Record<number, string> = {
  0: "IPv6 hop-by-hop options",
  43: "IPv6 routing",
  [FRAGMENT]: "IPv6 fragment",
  60: "IPv6 destination options",
};
/** How long options of TCP are that have one length. */
const LENGTHS: Record<number, number> = { 2: 4, 3: 3, 4: 2, 8: 10 };
const ECN = ["not ECT", "ECT(1)", "ECT(0)", "CE"];
const FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];

export function dissect(bytes: Uint8Array): Layer[] {
  const layers: Layer[] = [];
  const at = new Reader(bytes, layers);
  try {
    ethernet(at);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    at.layer("Cut off");
  }
  at.rest("Data", at.end);
  // A frame has 60 bytes at least, whatever it carries.
  at.rest("Padding", bytes.length);
  return layers.filter((layer) => layer.fields.length > 0 || layer.name === "Cut off");
}

/** Goes through the bytes of a packet, and notes what is read. */
class Reader {
  place = 0;
  /** Where what the headers speak of ends. */
  end: number;
  private readonly view: DataView;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly layers: Layer[],
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.end = bytes.length;
  }

  /** Takes what is up to there for one layer, if there is anything. */
  rest(name: string, end: number): void {
    const length = end - this.place;
    if (length <= 0) return;
    this.layer(name);
    this.field("length", length, () => `${length} bytes`);
  }

  /** What comes is so long, from `begin` on, as far as it was captured. */
  bound(begin: number, length: number): void {
    this.end = Math.min(this.end, begin + length);
  }

  layer(name: string): void {
    this.layers.push({ name, fields: [], begin: this.place, end: this.place });
  }

  /** Notes the next bytes as a field. */
  field(name: string, length: number, shown: (begin: number) => string): void {
    const begin = this.place;
    if (begin + length > this.bytes.length) throw new RangeError();
    this.note(name, shown(begin), begin, begin + length);
    this.place += length;
  }

  /** Notes a number of one, two or four bytes, and gives it. */
  number(name: string, length: 1 | 2 | 4, shown: (value: number) => string = String): number {
    const value = this.peek(this.place, length);
    this.field(name, length, () => shown(value));
    return value;
  }

  /** Notes a part of a byte or of several that were read. */
  note(name: string, value: string, begin: number, end: number): void {
    const layer = this.layers.at(-1)!;
    layer.fields.push({ name, value, begin, end });
    layer.end = Math.max(layer.end, end);
  }

  peek(place: number, length: 1 | 2 | 4): number {
    if (length === 1) return this.view.getUint8(place);
    return length === 2 ? this.view.getUint16(place) : this.view.getUint32(place);
  }

  mac(name: string): void {
    this.field(name, 6, (begin) => [...this.bytes.subarray(begin, begin + 6)].map(hex).join(":"));
  }

  ipv4(name: string): void {
    this.field(name, 4, (begin) => [...this.bytes.subarray(begin, begin + 4)].join("."));
  }

  ipv6(name: string): void {
    this.field(name, 16, (begin) => shortened(Array.from({ length: 8 }, (_, n) => this.peek(begin + 2 * n, 2))));
  }
}

function hex(value: number): string {
  return value.toString(16).padStart(2, "0");
}

function named(names: Record<number, string>): (value: number) => string {
  return (value) => (names[value] ? `${names[value]} (0x${value.toString(16)})` : `0x${value.toString(16)}`);
}

function ethernet(at: Reader): void {
  at.layer("Ethernet");
  at.mac("destination");
  at.mac("source");
  let type = at.number("type", 2, named(TYPES));
  while (type === 0x8100 || type === 0x88a8) {
    at.number("VLAN", 2, (tag) => `${tag & 0xfff}, priority ${tag >> 13}`);
    type = at.number("type", 2, named(TYPES));
  }
  if (type === 0x0806) arp(at);
  if (type === 0x0800) ipv4(at);
  if (type === 0x86dd) ipv6(at);
}

function arp(at: Reader): void {
  at.layer("ARP");
  at.number("hardware", 2);
  at.number("protocol", 2, named(TYPES));
  at.number("hardware length", 1);
  at.number("protocol length", 1);
  at.number("operation", 2, (value) => ({ 1: "who has (1)", 2: "is at (2)" })[value] ?? String(value));
  for (const who of ["sender", "target"]) {
    at.mac(`${who} Ethernet`);
    at.ipv4(`${who} IPv4`);
  }
}

/** DSCP and ECN, which both versions of IP have. */
function service(at: Reader, value: number, begin: number, end: number): void {
  at.note("DSCP", String(value >> 2), begin, end);
  at.note("ECN", ECN[value & 3]!, begin, end);
}

function ipv4(at: Reader): void {
  at.layer("IPv4");
  const begin = at.place;
  const words = at.number("version, header", 1, (value) => `${value >> 4}, ${(value & 15) * 4} bytes`) & 15;
  service(at, at.peek(at.place, 1), at.place, at.place + 1);
  at.place += 1;
  // Segmentation offload leaves it 0.
  const length = at.number("total length", 2);
  if (length >= words * 4) at.bound(begin, length);
  at.number("identification", 2);
  const fragment = at.number("flags, offset", 2, (value) => {
    const flags = [value & 0x4000 ? "do not fragment" : "", value & 0x2000 ? "more fragments" : ""].filter(Boolean);
    return `${flags.join(", ") || "none"}, ${(value & 0x1fff) * 8}`;
  });
  at.number("TTL", 1);
  const protocol = at.number("protocol", 1, named(PROTOCOLS));
  at.number("checksum", 2, (value) => `0x${value.toString(16)}`);
  at.ipv4("source");
  at.ipv4("destination");
  const options = begin + words * 4 - at.place;
  if (options > 0) at.field("options", options, () => `${options} bytes`);
  if (!(fragment & 0x1fff)) transport(at, protocol);
}

function ipv6(at: Reader): void {
  at.layer("IPv6");
  const [begin, word] = [at.place, at.peek(at.place, 4)];
  at.note("version", String(word >>> 28), begin, begin + 1);
  service(at, (word >>> 20) & 0xff, begin, begin + 2);
  at.note("flow label", `0x${(word & 0xfffff).toString(16)}`, begin + 1, begin + 4);
  at.place += 4;
  const length = at.number("payload length", 2);
  if (length > 0) at.bound(begin, 40 + length);
  let protocol = at.number("next header", 1, named(PROTOCOLS));
  at.number("hop limit", 1);
  at.ipv6("source");
  at.ipv6("destination");
  while (protocol in EXTENSIONS) {
    at.layer(EXTENSIONS[protocol]!);
    const isFragment = protocol === FRAGMENT;
    protocol = at.number("next header", 1, named(PROTOCOLS));
    // In units of eight bytes, without the first.
    const units = at.number("length", 1, (value) => (isFragment ? "8 bytes" : `${8 * (value + 1)} bytes`));
    if (isFragment) {
      const offset = at.number("offset", 2, (value) => `${value & 0xfff8}${value & 1 ? ", more fragments" : ""}`);
      at.number("identification", 4);
      if (offset & 0xfff8) return;
    } else at.field("options", 8 * (units + 1) - 2, () => `${8 * (units + 1) - 2} bytes`);
  }
  transport(at, protocol);
}

function transport(at: Reader, protocol: number): void {
  if (protocol === 6) tcp(at);
  if (protocol === 17) {
    at.layer("UDP");
    at.number("source port", 2);
    at.number("destination port", 2);
    at.number("length", 2);
    at.number("checksum", 2, (value) => `0x${value.toString(16)}`);
  }
  if (protocol === 1 || protocol === 58) {
    at.layer(PROTOCOLS[protocol]!);
    const type = at.number("type", 1);
    at.number("code", 1);
    at.number("checksum", 2, (value) => `0x${value.toString(16)}`);
    if ([0, 8, 128, 129].includes(type)) {
      at.number("identifier", 2);
      at.number("sequence", 2);
    }
  }
}

function tcp(at: Reader): void {
  at.layer("TCP");
  const begin = at.place;
  at.number("source port", 2);
  at.number("destination port", 2);
  at.number("sequence", 4);
  at.number("acknowledgement", 4);
  const words = at.number("header", 1, (value) => `${(value >> 4) * 4} bytes`) >> 4;
  at.number("flags", 1, (value) => FLAGS.filter((_, bit) => value & (1 << bit)).join(" ") || "none");
  at.number("window", 2, (value) => `${value}, before scaling`);
  at.number("checksum", 2, (value) => `0x${value.toString(16)}`);
  at.number("urgent pointer", 2);
  options(at, begin + words * 4);
}

function options(at: Reader, end: number): void {
  while (at.place < end) {
    const kind = at.peek(at.place, 1);
    if (kind <= 1) {
      at.field(kind ? "option: no operation" : "option: end", 1, () => "");
      continue;
    }
    const [begin, length] = [at.place, Math.max(2, at.peek(at.place + 1, 1))];
    const number = (offset: number) => at.peek(begin + offset, 4);
    if (kind in LENGTHS && LENGTHS[kind] !== length) {
      at.field(`option: kind ${kind}`, length, () => `${length} bytes, which it does not have`);
    } else if (kind === 2) at.field("option: MSS", length, () => String(at.peek(begin + 2, 2)));
    else if (kind === 3) at.field("option: window scale", length, () => `times ${2 ** at.peek(begin + 2, 1)}`);
    else if (kind === 4) at.field("option: SACK permitted", length, () => "");
    else if (kind === 5) {
      const edges = Array.from({ length: (length - 2) >> 3 }, (_, n) => `${number(2 + 8 * n)}–${number(6 + 8 * n)}`);
      at.field("option: SACK", length, () => edges.join(", "));
    } else if (kind === 8) at.field("option: timestamps", length, () => `${number(2)}, echo of ${number(6)}`);
    else at.field(`option: kind ${kind}`, length, () => `${length} bytes`);
  }
}
