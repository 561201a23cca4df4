import { expect, test } from "vitest";
import { Followed, KEPT_BYTES_MAX } from "../src/run/following";
import { Growth, LINE_BYTES_MAX, linesAt, visible, type Output } from "../src/run/logs";

const bytes = (text: string) => new TextEncoder().encode(text);
const output = (file: string, text: string, begin = 0): Output => ({ file, whose: file, bytes: bytes(text), begin });
const HEADER = "t_ns,node,process,stream,bytes\n";

test("lines are there from the instant on at which they were whole, those of several programs as they came", () => {
  const growth = new Growth();
  growth.take("guest0", `${HEADER}1000,a,x,stdout,4\n`);
  // A piece may end anywhere, and what a guest writes may be anything.
  growth.take("guest0", "3000,a,x,stdo");
  growth.take("guest0", "ut,9\nnonsense\n5000,a,x,stdout,12\n");
  growth.take("guest1", `${HEADER}2000,b,y,stderr,3\n`);
  const outputs = [output("nodes/a/x.stdout", "one\ntwo and\n"), output("nodes/b/y.stderr", "no\n")];
  const at = (untilNs: number) => linesAt(outputs, growth, untilNs).map((line) => [line.tNs, line.text, line.isError]);
  expect(at(999)).toEqual([]);
  expect(at(1000)).toEqual([[1000, "one", false]]);
  expect(at(4999)).toEqual([
    [1000, "one", false],
    [2000, "no", true],
  ]);
  expect(at(Infinity).at(-1)).toEqual([5000, "two and", false]);
});

test("the newest lines, of which it is not written down yet when they came, have no instant and are the last", () => {
  const growth = new Growth();
  growth.take("g", `${HEADER}1000,a,x,stdout,4\n3000,b,y,stdout,3\n`);
  const outputs = [
    output("nodes/a/x.stdout", "one\ntwo\n"),
    output("nodes/b/y.stdout", "no\n"),
    output("new", "late\n"),
  ];
  const at = (untilNs: number) => linesAt(outputs, growth, untilNs).map((line) => [line.tNs, line.text]);
  expect(at(Infinity)).toEqual([
    [1000, "one"],
    [3000, "no"],
    [null, "two"],
    [null, "late"],
  ]);
  expect(at(5000)).toEqual([
    [1000, "one"],
    [3000, "no"],
  ]);
});

test("what came nobody knows when is all there, and told as such", () => {
  const lines = linesAt([output("nodes/a/x.stdout", "one\ntwo")], new Growth(), 0);
  expect(lines.map((line) => [line.tNs, line.text])).toEqual([
    [null, "one"],
    [null, "two"],
  ]);
});

test("of an output whose beginning is not here half a line is none", () => {
  const growth = new Growth();
  growth.take("g", `${HEADER}1,a,x,stdout,100\n2,a,x,stdout,108\n`);
  const lines = linesAt([output("nodes/a/x.stdout", "lf\nwhole\n", 99)], growth, Infinity);
  expect(lines.map((line) => [line.tNs, line.text])).toEqual([[2, "whole"]]);
});

test("of a line of millions of letters the first are shown, and how many more there are", () => {
  const long = "x".repeat(LINE_BYTES_MAX + 7);
  const lines = linesAt([output("f", `${long}\nnext\n`)], new Growth(), 0);
  expect(lines.map(({ text, more }) => [text.length, more])).toEqual([
    [LINE_BYTES_MAX, 7],
    [4, 0],
  ]);
});

test("a hostile line stays a line", () => {
  expect(visible("\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07<script>\u202egnp\r")).toBe("red· <script>·gnp");
});

test("a file that grows is read from where it was left, and of a large one the newest is kept", async () => {
  let whole = bytes("one\n");
  const asked: number[] = [];
  const followed = new Followed("f", "f", 0, async (_, start) => {
    asked.push(start);
    return whole.slice(start, start + (1 << 20));
  });
  await followed.read();
  await followed.read();
  whole = bytes("one\ntwo\n");
  await followed.read();
  expect(new TextDecoder().decode(followed.bytes)).toBe("one\ntwo\n");
  expect(asked).toEqual([0, 4, 4, 4, 8]);
  whole = new Uint8Array(KEPT_BYTES_MAX + 100);
  await followed.read();
  expect([followed.begin, followed.bytes.length]).toEqual([100, KEPT_BYTES_MAX]);
  expect(new Followed("f", "f", KEPT_BYTES_MAX + 7, async () => whole).begin).toBe(7);
});

test("two who look at a file at once do not take the same of it twice, and miss nothing of it", async () => {
  let whole = bytes("one\n");
  const waiting: (() => void)[] = [];
  const followed = new Followed("f", "f", 0, async (_, start) => {
    const piece = whole.slice(start);
    await new Promise<void>((go) => waiting.push(go));
    return piece;
  });
  const looks = [followed.read()];
  await expect.poll(() => waiting.length).toBe(1);
  // What came after the first look had asked is seen by those who look later.
  looks.push(followed.read(), followed.read());
  let isDone = false;
  void Promise.all(looks).then(() => (isDone = true));
  waiting.shift()!();
  await expect.poll(() => waiting.length).toBe(1);
  waiting.shift()!();
  whole = bytes("one\ntwo\n");
  while (!isDone) {
    waiting.shift()?.();
    await new Promise((go) => setTimeout(go));
  }
  expect(new TextDecoder().decode(followed.bytes)).toBe("one\ntwo\n");
});

test("a look that failed does not end those after it", async () => {
  let isThere = false;
  const followed = new Followed("f", "f", 0, async (_, start) => {
    if (!isThere) throw new Error("not found");
    return bytes("one\n").slice(start);
  });
  await expect(followed.read()).rejects.toThrow("not found");
  isThere = true;
  await followed.read();
  expect(followed.bytes.length).toBe(4);
});
