import { expect, test } from "vitest";
import { filterOf } from "../src/run/filter";
import { dissect } from "../src/run/dissect";
import { dump, readCapture } from "../src/run/pcapng";

const u32 = (...values: number[]) =>
  values.flatMap((value) => [value & 255, (value >>> 8) & 255, (value >>> 16) & 255, value >>> 24]);
const block = (kind: number, body: number[]) => [...u32(kind, body.length + 12), ...body, ...u32(body.length + 12)];
const hex = (text: string) => text.match(/../g)!.map((pair) => parseInt(pair, 16));

const ETHERNET = "020000000001" + "020000000002" + "0800";
const ECHO = hex(ETHERNET + "4500001c000040004001" + "0000" + "0a000001" + "0a000002" + "0800000000070003");
const SYN = hex(
  ETHERNET +
    "45000028000040004006" +
    "0000" +
    "0a000002" +
    "0a000001" +
    "14510050" +
    "00000001" +
    "00000000" +
    "5002faf000000000",
);
const SIX = hex(
  "020000000001" +
    "020000000002" +
    "86dd" +
    "60000000" +
    "0008" +
    "1140" +
    "fd000000000000000000000000000001" +
    "fd000000000000000000000000000002" +
    "0035003500080000",
);

const enhanced = (tNs: number, bytes: number[]) => {
  const padded = [...bytes, ...Array((4 - (bytes.length % 4)) % 4).fill(0)];
  return block(6, [...u32(0, Math.floor(tNs / 2 ** 32), tNs >>> 0, bytes.length, bytes.length), ...padded]);
};
// Nanoseconds: if_tsresol of 9.
const HEAD = [
  ...block(0x0a0d0d0a, [...u32(0x1a2b3c4d), 1, 0, 0, 0, ...Array(8).fill(255)]),
  ...block(1, [...u32(1, 0), 9, 0, 1, 0, 9, 0, 0, 0, ...u32(0)]),
];
const FILE = new Uint8Array([
  ...HEAD,
  ...enhanced(1_500_000_000, ECHO),
  ...enhanced(2_000_000_000, SYN),
  ...enhanced(6_000_000_000, SIX),
]);

test("packets are read with their virtual instants, addresses, ports and what they say", () => {
  const packets = readCapture(FILE);
  expect(
    packets.map(({ tS, source, destination, protocol, ports }) => [tS, source, destination, protocol, ports]),
  ).toEqual([
    [1.5, "10.0.0.1", "10.0.0.2", "ICMP", []],
    [2, "10.0.0.2", "10.0.0.1", "TCP", [5201, 80]],
    [6, "fd00::1", "fd00::2", "UDP", [53, 53]],
  ]);
  expect(packets[0]!.info).toBe("echo request, seq 3");
  expect(packets[1]!.info).toContain("[SYN] seq 1");
});

test("a file that breaks off anywhere, or lies, gives the packets up to there", () => {
  for (let length = 0; length < FILE.length; length++) {
    expect(readCapture(FILE.slice(0, length)).length).toBeLessThanOrEqual(3);
  }
  for (let at = 0; at < FILE.length; at++) {
    const wrong = FILE.slice();
    wrong[at] = wrong[at]! ^ 255;
    expect(readCapture(wrong).length).toBeLessThanOrEqual(3);
  }
});

test("filters are words that all have to fit", () => {
  const packets = readCapture(FILE);
  const kept = (text: string) => packets.filter(filterOf(text)).map((packet) => packet.number);
  expect(kept("")).toEqual([1, 2, 3]);
  expect(kept("tcp")).toEqual([2]);
  expect(kept("port 53")).toEqual([3]);
  expect(kept("10.0.0.1 not tcp")).toEqual([1]);
  expect(kept("syn")).toEqual([2]);
  expect(() => filterOf("port http")).toThrow("port");
});

test("bytes are shown as people read them", () => {
  const [row, next] = dump(new Uint8Array([72, 105, ...Array(14).fill(0), 7]));
  expect([row!.offset, row!.bytes.length, row!.bytes[1]]).toEqual(["0000", 16, { at: 1, hex: "69", character: "i" }]);
  expect([next!.offset, next!.bytes]).toEqual(["0010", [{ at: 16, hex: "07", character: "." }]]);
});

const changed = (packet: number[], at: number, value: number) => packet.map((one, n) => (n === at ? value : one));

const fieldsOf = (packet: number[]) =>
  dissect(new Uint8Array(packet)).map((layer) => [
    layer.name,
    Object.fromEntries(layer.fields.map((field) => [field.name, field.value])),
  ]);

test("a packet's headers are told field by field, with where each is", () => {
  const [ethernet, ip, tcp] = dissect(new Uint8Array(SYN));
  expect([ethernet!.name, ip!.name, tcp!.name, tcp!.begin, tcp!.end]).toEqual(["Ethernet", "IPv4", "TCP", 34, 54]);
  const window = tcp!.fields.find((field) => field.name === "window");
  expect(window).toEqual({ name: "window", value: "64240, before scaling", begin: 48, end: 50 });
  expect(fieldsOf(SYN)[1]).toEqual([
    "IPv4",
    expect.objectContaining({
      "flags, offset": "do not fragment, 0",
      TTL: "64",
      protocol: "TCP (0x6)",
      ECN: "not ECT",
    }),
  ]);
  expect(fieldsOf(ECHO).at(-1)).toEqual(["ICMP", expect.objectContaining({ identifier: "7", sequence: "3" })]);
  expect(fieldsOf(SIX).map(([name]) => name)).toEqual(["Ethernet", "IPv6", "UDP"]);
});

test("options of TCP are told, and what is behind the headers is data", () => {
  const timestamps = "0101080a" + "0000000500000004";
  const packet = [...SYN];
  [packet[46], packet[17]] = [0x80, 54]; // a header of 32 bytes, and two behind it
  const [, , tcp, data] = fieldsOf([...packet, ...hex(timestamps), 72, 105]);
  expect(tcp![1]).toMatchObject({ header: "32 bytes", "option: timestamps": "5, echo of 4" });
  expect(data).toEqual(["Data", { length: "2 bytes" }]);
});

test("whatever a guest has written is told as far as it goes, and never fails", () => {
  for (const packet of [ECHO, SYN, SIX]) {
    for (let length = 0; length < packet.length; length++) {
      const layers = dissect(new Uint8Array(packet.slice(0, length)));
      for (const layer of layers) for (const field of layer.fields) expect(field.end).toBeLessThanOrEqual(length);
    }
    for (let at = 12; at < packet.length; at++) {
      expect(() => dissect(new Uint8Array(changed(packet, at, 255)))).not.toThrow();
      expect(() => dissect(new Uint8Array([...changed(packet, at, 0xf5), 5, 0, 8, 1]))).not.toThrow();
    }
  }
});

test("what pads a frame, extends a header or lies about its length is told as that", () => {
  expect(fieldsOf([...ECHO, 0, 0, 0]).at(-1)).toEqual(["Padding", { length: "3 bytes" }]);
  const hop = [...SIX.slice(0, 20), 0, ...SIX.slice(21, 54), 17, 0, 1, 4, 0, 0, 0, 0, ...SIX.slice(54)];
  hop[19] = 16; // bytes behind the header
  expect(fieldsOf(hop).map(([name]) => name)).toEqual(["Ethernet", "IPv6", "IPv6 hop-by-hop options", "UDP"]);
  const short = [...SYN, ...hex("02030101")];
  [short[46], short[17]] = [0x60, 44]; // a header of 24 bytes, and a packet of 44
  expect(fieldsOf(short)[2]![1]).toMatchObject({ "option: kind 2": "3 bytes, which it does not have" });
});
