// What several runs with changes are: every combination of the values of some fields, each as often as wanted. Pure.

export const RUNS_MAX = 200;

export interface Swept {
  path: string;
  /** With commas between them; within brackets and quotes a comma is part of a value. */
  values: string;
}

export function valuesOf(text: string): string[] {
  const found: string[] = [];
  let value = "";
  let depth = 0;
  let quote = "";
  for (const character of text) {
    if (quote) quote = character === quote ? "" : quote;
    else if (character === '"' || character === "'") quote = character;
    else if ("[{".includes(character)) depth += 1;
    else if ("]}".includes(character)) depth -= 1;
    if (character === "," && !quote && depth <= 0) {
      found.push(value.trim());
      value = "";
    } else value += character;
  }
  return [...found, value.trim()].filter(Boolean);
}

/** What a sweep is asked for by: each field with its values. */
export function sweptOf(fields: readonly Swept[]): { path: string; values: string[] }[] {
  return fields
    .filter((field) => field.path.trim())
    .map((field) => ({ path: field.path.trim(), values: valuesOf(field.values) }));
}

/** The settings of each run: the last field changes fastest. Repeats have seeds of their own, 1 and on. */
export function settingsOf(fields: readonly Swept[], repeats: number): string[][] {
  let found: string[][] = [[]];
  for (const { path, values } of fields.filter((field) => field.path.trim())) {
    found = found.flatMap((settings) => valuesOf(values).map((value) => [...settings, `${path.trim()}=${value}`]));
  }
  if (repeats <= 1) return found;
  return found.flatMap((settings) => Array.from({ length: repeats }, (_, n) => [...settings, `seed=${n + 1}`]));
}
