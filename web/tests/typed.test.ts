import { expect, test } from "vitest";
import { KEPT_BYTES_MAX, linesIn, Typed } from "../src/terminals/typed";

const bytes = (text: string) => new TextEncoder().encode(text);
const said = (typed: Typed) => typed.take().map((one) => new TextDecoder().decode(one));

test("what is typed before somebody reads comes in order, and once", () => {
  const typed = new Typed();
  expect(["l", "s", "\r"].map((key) => typed.keep(bytes(key)))).toEqual([0, 0, 0]);
  expect([said(typed), said(typed)]).toEqual([["l", "s", "\r"], []]);
});

test("what is too much is counted, and nothing is sent that was typed after it", () => {
  const typed = new Typed();
  typed.keep(bytes("rm "));
  expect(typed.keep(new Uint8Array(KEPT_BYTES_MAX))).toBe(KEPT_BYTES_MAX);
  expect(typed.keep(bytes("/\r"))).toBe(2);
  expect(said(typed)).toEqual(["rm "]);
  expect([typed.keep(bytes("ls\r")), said(typed)]).toEqual([0, ["ls\r"]]);
});

test("where nobody comes any more all of it is lost", () => {
  const typed = new Typed();
  typed.keep(bytes("exit\r"));
  expect([typed.drop(), typed.drop()]).toEqual([5, 0]);
});

test("what is pasted is as many commands as it has lines, but for an end of line at its end", () => {
  expect(["ls", "ls\n", "a\r\nb", "a\rb\n"].map(linesIn)).toEqual([1, 1, 2, 2]);
});
