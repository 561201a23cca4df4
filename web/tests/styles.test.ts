// One place for what components share: a rule that several components write for themselves belongs into `src/app.css`.
/// <reference types="vite/client" />
import { expect, test } from "vitest";

const texts = import.meta.glob<string>("../src/**/*.svelte", { query: "?raw", import: "default", eager: true });
const files = Object.keys(texts);

/** The rules of a component outside of media queries, each in one line. */
function rulesOf(file: string): string[] {
  const style = /<style>([\s\S]*)<\/style>/.exec(texts[file]!)?.[1] ?? "";
  const plain = style.replace(/@media[^{]*\{(?:[^{}]*\{[^}]*\})*\s*\}/g, "");
  return [...plain.matchAll(/([^{}]+)\{([^}]*)\}/g)].map(([, selector, body]) =>
    `${selector} {${body}}`.replace(/\s+/g, " ").trim(),
  );
}

test("no two components write the same rule", () => {
  const users = new Map<string, string[]>();
  for (const file of files)
    for (const rule of new Set(rulesOf(file))) users.set(rule, [...(users.get(rule) ?? []), file]);
  expect(files.length).toBeGreaterThan(30);
  expect([...users].filter(([, of]) => of.length > 1)).toEqual([]);
});

test("colours are those of the theme", () => {
  const own = files.filter((file) => rulesOf(file).some((rule) => /#[0-9a-f]{3,8}\b|\brgb\(/i.test(rule)));
  expect(own).toEqual([]);
});
