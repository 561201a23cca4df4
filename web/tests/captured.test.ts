import { expect, test } from "vitest";
import { Captured, SHOWN_MAX, type Looked } from "../src/run/captured";
import { Reading, type Worked } from "../src/run/reading";

/** A capture of so many datagrams, one a millisecond, from port 1000 on. */
function capture(count: number): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(48 + count * 80);
  const view = new DataView(file.buffer);
  const words = (at: number, ...values: number[]) =>
    values.forEach((value, n) => view.setUint32(at + 4 * n, value, true));
  words(0, 0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff, 28);
  words(28, 1, 20, 1, 0, 20);
  for (let n = 0; n < count; n++) {
    const at = 48 + n * 80;
    words(at, 6, 80, 0, 0, n * 1000, 46, 46);
    view.setUint32(at + 76, 80, true);
    const frame = at + 28;
    view.setUint16(frame + 12, 0x0800);
    view.setUint8(frame + 14, 0x45);
    view.setUint16(frame + 16, 32);
    view.setUint8(frame + 23, 17);
    file.set([10, 0, 0, 1, 10, 0, 0, 2], frame + 26);
    view.setUint16(frame + 34, 1000 + n);
    view.setUint16(frame + 36, 53);
    view.setUint16(frame + 38, 12);
    file.set([110, 117, 109, 48 + (n % 10)], frame + 42);
  }
  return file;
}

/** A worker that is none: it answers when it is told to. */
class Stand implements Worked {
  onmessage: Worked["onmessage"] = null;
  readonly sent: any[] = [];
  isOver = false;
  postMessage(question: unknown): void {
    this.sent.push(question);
  }
  answer(id: number, said: unknown): void {
    this.onmessage?.call(this as unknown as Worker, { data: { id, said } } as MessageEvent);
  }
  terminate(): void {
    this.isOver = true;
  }
}

test("so many packets as a table shows are told, of those that a filter keeps up to an instant", () => {
  const captured = new Captured();
  const file = capture(2000);
  captured.take(file.slice(0, 777));
  captured.take(file.slice(777));
  const looked = captured.look({ filter: "src portrange 1500-9999", untilNs: 1.4995e9, first: 600 });
  expect([looked.total, looked.found, looked.wrong]).toEqual([2000, 1000, ""]);
  expect(looked.shown.map((one) => one.number)).toEqual(Array.from({ length: 400 }, (_, n) => 1101 + n));
  expect(captured.look({ filter: "", untilNs: Infinity, first: 0 }).shown.length).toBe(SHOWN_MAX);
  const wrong = captured.look({ filter: "port", untilNs: Infinity, first: 1999 });
  expect([wrong.found, wrong.shown[0]!.number, wrong.wrong]).toEqual([2000, 2000, "port: of what?"]);
});

test("what is told has bytes of its own, and not all of the file with each", () => {
  const captured = new Captured();
  captured.take(capture(3));
  const [packet] = captured.look({ filter: "", untilNs: Infinity, first: 1 }).shown;
  expect(packet!.bytes.buffer.byteLength).toBe(46);
  const { ends, pieces } = captured.follow(2);
  expect(ends).toEqual(["10.0.0.1 1001", "10.0.0.2 53"]);
  expect(pieces.map((piece) => [String.fromCharCode(...piece.bytes), piece.bytes.buffer.byteLength])).toEqual([
    ["num1", 4],
  ]);
});

test("each question has its own answer, whichever comes first", async () => {
  const stand = new Stand();
  const reading = new Reading(stand);
  reading.take(new Uint8Array(4));
  const asked = [1, 2].map((first) => reading.look({ filter: "", untilNs: 0, first }));
  const said = (total: number): Looked => ({ total, found: 0, shown: [], wrong: "" });
  const [one, two] = stand.sent.slice(1).map((question) => question.id);
  stand.answer(two, said(2));
  stand.answer(one, said(1));
  stand.answer(99, said(9));
  expect((await Promise.all(asked)).map((looked) => looked.total)).toEqual([1, 2]);
  reading.close();
  expect(stand.isOver).toBe(true);
});
