import { expect, test } from "vitest";
import { svgOf, ticks } from "../src/plots/svg";

const unit = (value: number) => `${value} B`;
const band = { name: "cut", what: "partition <a>", beginNs: 1e9, endNs: null };
const drawn = (label: string) => ({
  tS: [0, 1, 2, 3],
  lines: [
    { label, values: [0, 50, undefined, 100] },
    { label: "other", values: [10, null, 10, 1e6] },
  ],
  unit,
  bands: [band],
});

/** Where a path goes, as moves and lines. */
const paths = (svg: string) => [...svg.matchAll(/<path d="([^"]*)"/g)].map(([, path]) => path!.replace(/[^ML]/g, ""));

test("ticks are round, and within what is shown", () => {
  expect(ticks(0, 100)).toEqual([0, 20, 40, 60, 80, 100]);
  expect(ticks(0.3, 0.9).map((one) => +one.toFixed(3))).toEqual([0.4, 0.6, 0.8]);
  expect(ticks(5, 5)).toEqual([5]);
});

test("a drawing has a line for each, which goes on over instants without a sample and ends where there is nothing", () => {
  expect(paths(svgOf("Rate", drawn("a"), [0, 3]))).toEqual(["MLL", "MML"]);
});

test("a drawing of what was zoomed into has that alone, as high as that is", () => {
  const svg = svgOf("Rate", drawn("a"), [0, 2]);
  expect(paths(svg)).toEqual(["ML", "MM"]);
  expect(svg).toContain(">50 B<");
  expect(svg).not.toContain("000000 B");
});

test("hostile names stay text", () => {
  const svg = svgOf('<script>"&', drawn("</svg><script>\u0000"), [0, 3]);
  expect(svg).toContain("&lt;script&gt;&quot;&amp;");
  expect(svg.match(/<script|\u0000/g)).toBeNull();
  expect(svg.match(/<\/svg>/g)).toHaveLength(1);
  expect(svg).toContain("partition &lt;a&gt;");
});
