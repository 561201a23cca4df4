import { expect, test } from "vitest";
import { joinedPath, listed } from "../src/nodes/files";
import { encoded, FrameReader, Kind, number, Stream } from "../src/nodes/frames";
import { inNode, type Line } from "../src/nodes/session";
import { liveLine } from "../src/run/wireshark";

test("frames come whole out of bytes that are cut anywhere", () => {
  const sent = [encoded(Kind.data, 1, new Uint8Array([1, 2, 3])), encoded(Kind.exited, 0, number(7))];
  const all = new Uint8Array(sent.flatMap((one) => [...one]));
  const reader = new FrameReader();
  const found = [...all].flatMap((byte) => reader.take(new Uint8Array([byte])));
  expect(found.map(({ kind, stream, payload }) => [kind, stream, [...payload]])).toEqual([
    [2, 1, [1, 2, 3]],
    [8, 0, [7, 0, 0, 0]],
  ]);
  const lie = encoded(Kind.data, 1);
  new DataView(lie.buffer).setUint32(8, 0xffffffff, true);
  expect(() => new FrameReader().take(lie)).toThrow("more than a frame has");
});

/** The other side of a session, which keeps what it gets. */
class Node implements Line {
  binaryType: BinaryType = "blob";
  onopen: Line["onopen"] = null;
  onmessage: Line["onmessage"] = null;
  onclose: Line["onclose"] = null;
  asked: unknown;
  input: number[] = [];
  isInputOver = false;
  granted = [0, 0, 0];
  isClosed = false;
  private frames = new FrameReader();

  send(message: unknown): void {
    if (typeof message === "string") {
      this.asked = JSON.parse(message);
      return;
    }
    for (const { kind, stream, payload } of this.frames.take(message as Uint8Array)) {
      if (kind === Kind.data) this.input.push(...payload);
      if (kind === Kind.close) this.isInputOver = true;
      if (kind === Kind.grant) this.granted[stream]! += new DataView(payload.buffer).getUint32(0, true);
    }
  }
  close(): void {
    this.isClosed = true;
  }
  open(): void {
    this.onopen!.call(this as never, new Event("open"));
  }
  say(data: unknown): void {
    this.onmessage?.call(this as never, { data } as MessageEvent);
  }
  frame(kind: number, stream: number, payload: Uint8Array = new Uint8Array()): void {
    this.say(encoded(kind, stream, payload).buffer);
  }
}

test("a program gets its input as far as it takes it, and what it prints is here", async () => {
  const node = new Node();
  const ended = inNode("r", "a", ["cat"], { input: new Uint8Array([1, 2, 3]), connect: () => node });
  node.open();
  expect(node.asked).toEqual({ node: "a", argv: ["cat"] });
  node.say("{}");
  expect(node.granted.slice(1)).toEqual([1 << 20, 1 << 20]);
  expect(node.input).toEqual([]);
  node.frame(Kind.grant, Stream.input, number(2));
  expect([node.input, node.isInputOver]).toEqual([[1, 2], false]);
  node.frame(Kind.grant, Stream.input, number(9));
  expect([node.input, node.isInputOver]).toEqual([[1, 2, 3], true]);
  node.frame(Kind.data, Stream.output, new Uint8Array([65]));
  node.frame(Kind.data, Stream.errors, new Uint8Array([66, 10]));
  // What was taken is welcome again.
  expect(node.granted.slice(1)).toEqual([(1 << 20) + 1, (1 << 20) + 2]);
  node.frame(Kind.exited, 0, new Uint8Array([3, 0, 0, 0, 0, 0, 0, 0]));
  expect(await ended).toEqual({ status: 3, output: new Uint8Array([65]), errors: "B", isCut: false });
  expect(node.isClosed).toBe(true);
});

test("more than was asked for is cut, and the program hung up on", async () => {
  const node = new Node();
  const ended = inNode("r", "a", ["yes"], { most: 2, connect: () => node });
  node.open();
  node.say("{}");
  node.frame(Kind.data, Stream.output, new Uint8Array([1, 2, 3]));
  expect(await ended).toMatchObject({ output: new Uint8Array([1, 2]), isCut: true });
  expect(node.isClosed).toBe(true);
});

test("what cannot be is told: a refusal, a program that is not there, a connection that is lost", async () => {
  for (const [what, told] of [
    [(node: Node) => node.say(JSON.stringify({ detail: "no such node" })), "no such node"],
    [(node: Node) => node.frame(Kind.failed, 0, new Uint8Array([127, 0, 0, 0, 110, 111])), "no"],
    [() => undefined, "lost"],
  ] as const) {
    const node = new Node();
    const ended = inNode("r", "a", ["x"], { connect: () => node });
    node.open();
    what(node);
    node.onclose?.call(node as never, {} as CloseEvent);
    await expect(ended).rejects.toThrow(told);
  }
});

test("what ls prints is files, and what is no line of it is none", () => {
  const text = `total 12
drwxr-xr-x 2 0 0 4096 Nov 27 01:00 etc
-rw-r--r-- 1 root root 1234 Jan  1  2020 a file -> b
lrwxrwxrwx 1 0 0 7 Nov 27 01:00 bin -> usr/bin
crw-rw-rw- 1 0 0 1, 3 Nov 27 01:00 null
<script>
`;
  expect(listed(text)).toEqual([
    { name: "etc", kind: "directory", sizeBytes: null },
    { name: "a file -> b", kind: "file", sizeBytes: 1234 },
    { name: "bin", kind: "link", sizeBytes: null },
    { name: "null", kind: "other", sizeBytes: null },
  ]);
});

test("paths go down and up", () => {
  expect(joinedPath("/", "etc")).toBe("/etc");
  expect(joinedPath("/etc/", "..")).toBe("/");
  expect(joinedPath("/", "..")).toBe("/");
  expect(joinedPath("a//b/", "")).toBe("/a/b");
});

test("a line for a shell is one word where it was one", () => {
  expect(liveLine("http://x:1", "r1", "a:eth0", "tcp port 80 or 'x'")).toBe(
    `dilaton --server http://x:1 capture r1 a:eth0 'tcp port 80 or '\\''x'\\''' --wireshark`,
  );
});
