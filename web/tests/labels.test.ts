import { describe, expect, it } from "vitest";
import { withRoom, type Label } from "../src/canvas/labels";

const label = (id: string, x: number, y: number, angle = 0): Label => ({ id, x, y, angle, width: 60, height: 12 });

describe("words of a drawing", () => {
  it("are drawn where they are apart, and the more important one where they are not", () => {
    expect([...withRoom([label("a", 0, 0), label("b", 50, 0), label("c", 0, 13), label("d", 61, 0)], [])]).toEqual([
      "a",
      "c",
      "d",
    ]);
  });

  it("lie on no node", () => {
    expect([...withRoom([label("a", 0, 0), label("b", 0, 40)], [{ x: 20, y: 0, radius: 17 }])]).toEqual(["b"]);
  });

  it("are where they lie, at any angle, and not in the box around that", () => {
    const slope = Math.PI / 4;
    const along = [label("a", 0, 0, slope), label("b", 14, -14, slope), label("c", 5, 5, -slope)];
    expect([...withRoom(along, [])]).toEqual(["a", "b"]);
  });

  it("which are many take no longer than they are many", () => {
    const many = Array.from({ length: 3000 }, (_, n) => label(`${n}`, 70 * (n % 60), 20 * Math.floor(n / 60)));
    expect(withRoom(many, []).size).toBe(3000);
  });
});
