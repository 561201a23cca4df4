// Which packets of a table are shown: the part of tcpdump's language (pcap-filter) that the table can answer. Words beside
// each other all have to fit. What is no word of the language is looked for in the addresses and in the last column. Pure.
//
//   any   = every {or every}        every = one {[and] one}        one = not one | ( any ) | primitive
import type { Packet } from "./pcapng";

type Test = (packet: Packet) => boolean;
type Side = "src" | "dst" | "";

const PROTOCOLS: Record<string, Test> = {
  tcp: (packet) => packet.protocol === "TCP",
  udp: (packet) => packet.protocol === "UDP",
  icmp: (packet) => packet.protocol === "ICMP",
  icmp6: (packet) => packet.protocol === "ICMPv6",
  arp: (packet) => packet.protocol === "ARP",
  ip: (packet) => packet.source.includes(".") && packet.destination.includes("."),
  ip6: (packet) => isSix(packet.source) && isSix(packet.destination),
};

function isSix(address: string): boolean {
  return address.includes(":") && !/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(address);
}

/** The test of a filter; an empty one keeps all.
 *
 * @throws Error: what is wrong with it, and what is expected. */
export function filterOf(text: string): Test {
  const words = text.toLowerCase().match(/\(|\)|!(?!=)|&&|\|\||[^\s()!&|]+/g) ?? [];
  let at = 0;

  function any(): Test {
    const tests = [every()];
    while (["or", "||"].includes(words[at] ?? "")) {
      at += 1;
      tests.push(every());
    }
    return tests.length === 1 ? tests[0]! : (packet) => tests.some((test) => test(packet));
  }

  function every(): Test {
    const tests = [one()];
    while (at < words.length && ![")", "or", "||"].includes(words[at]!)) {
      if (["and", "&&"].includes(words[at]!)) at += 1;
      tests.push(one());
    }
    return (packet) => tests.every((test) => test(packet));
  }

  function one(): Test {
    const word = words[at++];
    if (word === undefined) throw new Error("the filter breaks off: a word is missing at its end");
    if (word === "not" || word === "!") {
      const test = one();
      return (packet) => !test(packet);
    }
    if (word === "(") {
      const test = any();
      if (words[at++] !== ")") throw new Error("a ( without its )");
      return test;
    }
    if ([")", "or", "||", "and", "&&"].includes(word)) throw new Error(`${word}: a word is missing before it`);
    if (word === "src" || word === "dst") return sided(word, words[at] ?? "");
    if (["host", "net", "port", "portrange"].includes(word)) {
      at -= 1;
      return sided("", word);
    }
    if (word === "less" || word === "greater") {
      const length = number(word);
      return (packet) => (word === "less" ? packet.length <= length : packet.length >= length);
    }
    const protocol = PROTOCOLS[word];
    if (protocol) return protocol;
    return (packet) =>
      packet.source.startsWith(word) ||
      packet.destination.startsWith(word) ||
      packet.protocol.toLowerCase() === word ||
      packet.info.toLowerCase().includes(word);
  }

  /** What is about one end of a packet, or about either. */
  function sided(side: Side, what: string): Test {
    if (["host", "net", "port", "portrange"].includes(what)) at += 1;
    const ends = (packet: Packet, of: readonly [string | number | undefined, string | number | undefined]) =>
      side === "src" ? [of[0]] : side === "dst" ? [of[1]] : of;
    if (what === "port" || what === "portrange") {
      const said = value(what);
      const [low, high] = /^\d+-\d+$/.test(said) ? said.split("-").map(Number) : [Number(said), Number(said)];
      if (!/^\d+(-\d+)?$/.test(said) || (what === "port") !== /^\d+$/.test(said))
        throw new Error(what === "port" ? "port: a number, as in port 80" : "portrange: two numbers, as in 80-90");
      return (packet) =>
        ends(packet, [packet.ports[0], packet.ports[1]]).some(
          (port) => typeof port === "number" && port >= low! && port <= high!,
        );
    }
    const said = value(what === "net" ? "net" : "host");
    const fits = what === "net" ? inNet(said) : (address: string) => address === said;
    return (packet) => ends(packet, [packet.source, packet.destination]).some((address) => fits(String(address)));
  }

  function value(of: string): string {
    const found = words[at++];
    if (found === undefined || found === ")") throw new Error(`${of}: of what?`);
    return found;
  }

  function number(of: string): number {
    const said = value(of);
    if (!/^\d+$/.test(said)) throw new Error(`${of}: a number of bytes, as in ${of} 100`);
    return Number(said);
  }

  if (!words.length) return () => true;
  const test = any();
  if (at < words.length) throw new Error(`${words[at]}: without its (`);
  return test;
}

function inNet(said: string): (address: string) => boolean {
  const [network = "", length = "32"] = said.split("/");
  const bits = Number(length);
  const wanted = numberOf(network);
  if (wanted === null || !/^\d+$/.test(length) || bits > 32) throw new Error("net: an IPv4 network, as 10.0.0.0/8");
  const size = 2 ** (32 - bits);
  return (address) => {
    const found = numberOf(address);
    return found !== null && Math.floor(found / size) === Math.floor(wanted / size);
  };
}

function numberOf(address: string): number | null {
  const parts = address.split(".").map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : 256));
  if (parts.length !== 4 || parts.some((part) => part > 255)) return null;
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}
