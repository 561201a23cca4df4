import { describe, expect, test } from "vitest";
import { parseDocument } from "yaml";
import * as lab from "../src/lab/document";
import { apply, changeBetween, History, reversed, type Written } from "../src/lab/history";
import { FIRST_NETWORK, SMALL } from "../src/lab/templates";

/** Numbers by chance that are the same each time (xorshift32). */
function dice(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** A lab as somebody may have written it: in blocks or in one line, with comments anywhere, spaced as they like. */
function randomLab(seed: number): string {
  const roll = dice(seed);
  const count = 2 + roll(6);
  const names = Array.from({ length: count }, (_, n) => `n${n}`);
  const comment = (what: string) => (roll(2) ? ` ${" ".repeat(roll(3))}# ${what}` : "");
  const kinds = ["{}", "", "{kind: router}", "{ kind: switch }", "\n    kind: host\n    sysctls: {a.b: 1}"];
  const lines = [`# lab ${seed}`, `name: lab-${seed}${comment("the name")}`, ""];
  lines.push("time: {tdf: auto}   # as slow as it takes", "nodes:");
  names.forEach((name, n) =>
    lines.push(
      `  # about ${name}`,
      `  ${name}: ${kinds[roll(kinds.length)]}${n % 2 ? "" : comment(`end ${name}`)}`.trimEnd(),
    ),
  );
  lines.push("", "links:");
  for (let n = 1; n < count; n++) {
    const [a, b] = [names[n - 1], names[n]];
    const forms = [
      `- ${a} -- ${b}`,
      `- {endpoints: [${a}, ${b}], rate: ${1 + roll(9)}Mbit}`,
      `- endpoints: ["${a}:eth${roll(3)}x", "${b}:e${n}"]\n    delay: 5ms`,
    ];
    lines.push(`  ${forms[roll(3)]}${comment(`link ${n}`)}`);
  }
  lines.push("", "run:", "  - {on: n0, exec: ping -c 1 n1}   # say hello", "");
  return lines.join("\n");
}

const comments = (text: string) => [...text.matchAll(/# .*/g)].map((found) => found[0].trim());
const drawn = (text: string) => {
  const { nodes, links } = lab.readLab(text);
  return { nodes: nodes.map(({ name, kind }) => [name, kind]), links: links.map(({ ends, rate }) => [ends, rate]) };
};

describe("200 random labs", () => {
  test.each(Array.from({ length: 200 }, (_, seed) => [seed]))(
    "lab %i: what is drawn is read again, and nothing else changes",
    (seed) => {
      const roll = dice(seed + 1000);
      const before = randomLab(seed);
      expect(parseDocument(before).errors).toEqual([]);
      const was = drawn(before);
      const names = was.nodes.map(([name]) => name!);
      const [from, to] = [names[roll(names.length)]!, names[roll(names.length)]!];

      const added = lab.addNode(before, "fresh", "router");
      expect(drawn(added).nodes).toEqual([...was.nodes, ["fresh", "router"]]);
      const linked = lab.addLink(added, from, "fresh");
      expect(drawn(linked).links).toHaveLength(was.links.length + 1);
      const typed = lab.setField(linked, ["links", was.links.length, "rate"], "7Mbit");
      expect(drawn(typed).links.at(-1)![1]).toBe("7Mbit");
      const renamed = lab.renameNode(typed, to, "other");
      expect(drawn(renamed).nodes).toHaveLength(names.length + 1);
      expect(drawn(renamed).nodes.map(([name]) => (name === "other" ? to : name))).toEqual([...names, "fresh"]);

      for (const text of [added, linked, typed, renamed]) expect(comments(text)).toEqual(comments(before));
      // Lines that nobody has touched stay to the letter.
      for (const line of before.split("\n")) expect(typed.split("\n")).toContain(line);
      const without = lab.removeNodes(lab.renameNode(renamed, "other", to), ["fresh"]);
      expect(drawn(without)).toEqual(was);
      expect(parseDocument(without).toJS()).toEqual(parseDocument(before).toJS());

      // Positions are beside the text: they stay with their nodes, and undo brings all back.
      const history = new History({ text: before, positions: { [from]: [seed, 2] } });
      for (const text of [added, linked, typed, renamed])
        history.write({ text, positions: { ...history.present.positions, fresh: [1, text.length] } });
      expect(history.present.positions[from]).toEqual([seed, 2]);
      for (let n = 0; n < 4; n++) history.undo();
      expect(history.present).toEqual({ text: before, positions: { [from]: [seed, 2] } });
      for (let n = 0; n < 4; n++) history.redo();
      expect(history.present.text).toBe(renamed);
    },
  );
});

test("a change and its reverse lead back, whatever they are", () => {
  for (let seed = 0; seed < 300; seed++) {
    const roll = dice(seed);
    const state = (): Written => ({
      text: Array.from({ length: roll(12) }, () => "ab\n"[roll(3)]).join(""),
      positions: Object.fromEntries(
        ["x", "y", "__proto__"].filter(() => roll(2)).map((name) => [name, [roll(3), 0] as const]),
      ),
    });
    const [a, b] = [state(), state()];
    const change = changeBetween(a, b);
    expect(apply(a, change)).toEqual(b);
    expect(apply(b, reversed(change))).toEqual(a);
  }
});

test("what is typed at one place is undone at once, up to the end of a line", () => {
  const history = new History({ text: "", positions: {} });
  for (const text of ["a", "ab", "ab\n", "ab\nc"]) history.write({ text, positions: {} }, true);
  expect(history.undo().text).toBe("ab\n");
  expect(history.undo().text).toBe("");
  expect(history.canUndo).toBe(false);
});

test("labs to start from are read", () => {
  expect(drawn(SMALL).nodes).toEqual([
    ["client", ""],
    ["server", ""],
    ["router", "router"],
  ]);
  expect(drawn(FIRST_NETWORK).links).toHaveLength(3);
});

test("nodes are copied with the links between them, and with what is said of them", () => {
  const { text, names } = lab.duplicate(SMALL, ["client", "router"]);
  expect([...names.values()]).toEqual(["client-2", "router-2"]);
  const after = drawn(text);
  expect(after.nodes.slice(3)).toEqual([
    ["client-2", ""],
    ["router-2", "router"],
  ]);
  expect(after.links).toHaveLength(3);
  expect(after.links[2]).toEqual([
    [
      { node: "client-2", interface: "" },
      { node: "router-2", interface: "" },
    ],
    "100Mbit",
  ]);
});

test("links by a pattern go from each node that matches to each that its name leads to", () => {
  const names = ["leaf1", "leaf2", "spine1", "spine2"];
  expect(lab.linksByPattern(names, "leaf(\\d+)", "spine$1")).toEqual([
    ["leaf1", "spine1"],
    ["leaf2", "spine2"],
  ]);
  expect(lab.linksByPattern(names, "leaf\\d", "spine.")).toHaveLength(4);
});

test("a text that is no YAML is not changed, and its mistakes have their places", () => {
  expect(() => lab.addNode("nodes: [", "x", "host")).toThrow();
  expect(lab.readLab("a: b: c\n").mistakes[0]).toMatchObject({ line: 1 });
  expect(lab.readLab("- 1\n").nodes).toEqual([]);
});

test("fields are shown as they are written, and an empty one is removed", () => {
  expect(lab.fieldText(SMALL, ["links", 1, "queue"])).toBe("{limit: 100}");
  expect(lab.fieldText(SMALL, ["links", 0, "rate"])).toBe("100Mbit");
  expect(lab.fieldText(SMALL, ["nodes", "client", "cpu"])).toBe("");
  const set = lab.setField(SMALL, ["nodes", "client", "cpu"], "0.5");
  expect(lab.fieldText(set, ["nodes", "client", "cpu"])).toBe("0.5");
  expect(lab.setField(set, ["nodes", "client", "cpu"], "")).toContain("  client:");
  const link = lab.setField("links: [a -- b]\n", ["links", 0, "delay"], "5ms");
  expect(parseDocument(link).toJS()).toEqual({ links: [{ endpoints: ["a", "b"], delay: "5ms" }] });
});

test("nodes are put into a group, which the lab then has, and a node is of an image", () => {
  const before = "name: x\nnodes:\n  a: {kind: router} # the first\n  b:\n  c: {}\n";
  const grouped = lab.group(before, ["a", "b"], "edge");
  expect(grouped).toBe(
    "name: x\nnodes:\n  a: {kind: router, group: edge} # the first\n  b: {group: edge}\n  c: {}\ngroups:\n  edge: {}\n",
  );
  expect(lab.group(grouped, ["c"], "edge")).toBe(grouped.replace("c: {}", "c: {group: edge}"));
  expect(lab.addNode("nodes: {}\n", "h1", "host", "debian:12")).toContain("h1: {image: debian:12}");
});
