import { expect, test } from "vitest";
import { filterOf } from "../src/run/filter";
import type { Packet } from "../src/run/pcapng";
import { asText, streamOf } from "../src/run/streams";

let number = 0;
function packet(
  source: string,
  destination: string,
  sequence: number,
  text: string,
  more: Partial<Packet> = {},
): Packet {
  number += 1;
  const payload = new TextEncoder().encode(text);
  return {
    number,
    tS: number,
    source,
    destination,
    protocol: "TCP",
    ports: source < destination ? [4000, 80] : [80, 4000],
    length: 54 + text.length,
    info: "",
    bytes: new Uint8Array(),
    payload,
    payloadLength: payload.length,
    tcp: { sequence, isBegin: false },
    ...more,
  };
}
const [A, B] = ["10.0.0.1", "10.0.0.2"];
const said = (packets: Packet[]) =>
  streamOf(packets, packets[0]!).pieces.map((piece) => [piece.isFirst, asText(piece.bytes), piece.missing]);

test("a stream is what programs read: in order, each byte once, over the end of sequence numbers", () => {
  const begin = 0xffff_fffd;
  const packets = [
    packet(A, B, begin - 1, "", { tcp: { sequence: begin - 1, isBegin: true } }),
    packet(A, B, begin, "GET "),
    packet(A, B, 3, "x"), // Before what comes before it.
    packet(A, B, begin, "GET "), // Sent once more,
    packet(A, B, begin + 2, "T /"), // and with more behind it.
    packet(A, B, 2, "?"),
    packet("10.0.0.9", B, 1, "another's"),
    packet(B, A, 7, "200"),
  ];
  expect(said(packets)).toEqual([
    [true, "GET ", 0],
    [true, "/", 0],
    [true, "?", 0],
    [true, "x", 0],
    [false, "200", 0],
  ]);
});

test("what is not in the capture is told, and not invented", () => {
  const cut = packet(A, B, 13, "cu", { payloadLength: 5 });
  expect(said([packet(A, B, 1, "ab"), packet(A, B, 10, "xyz"), cut, packet(A, B, 18, "end")])).toEqual([
    [true, "ab", 0],
    [true, "xyz", 7],
    [true, "cu", 0],
    [true, "end", 3],
  ]);
});

test("a filter is read as tcpdump reads it", () => {
  const http = packet(A, B, 1, "GET /", { info: "4000 → 80 [ACK]" });
  const keeps = (text: string) => filterOf(text)(http);
  for (const text of [
    "",
    "tcp",
    "host 10.0.0.1",
    "src host 10.0.0.1 and dst port 80",
    "src 10.0.0.1",
    "net 10.0.0.0/8 && not udp",
    "udp or (tcp and portrange 70-90)",
    "!arp greater 50 less 59",
    "ip and ack",
    "tcp port 80 10.0.",
  ])
    expect([text, keeps(text)]).toEqual([text, true]);
  for (const text of [
    "udp",
    "dst host 10.0.0.1",
    "src port 80",
    "net 10.1.0.0/16",
    "ip6",
    "not (tcp or udp)",
    "less 10",
  ])
    expect([text, keeps(text)]).toEqual([text, false]);
  for (const text of [
    "port x",
    "port",
    "(tcp",
    "tcp)",
    "tcp or",
    "and tcp",
    "not",
    "net 10.0.0/8",
    "less few",
    "portrange 80",
  ])
    expect(() => filterOf(text), text).toThrow();
});

test("text of a stream has no control characters", () => {
  expect(asText(new Uint8Array([104, 105, 13, 10, 27, 91, 255, 9]))).toBe("hi\n.[.\t");
});
