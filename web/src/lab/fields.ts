// The fields that a lab says, by the paths by which templates and sweeps name them: `links.0.rate`. Pure.
import { isMap, isScalar, isSeq, parseDocument } from "yaml";

/** At most this many are offered: a lab of a thousand nodes has more than anybody looks through. */
const FIELDS_MAX = 300;

/** Kernel parameters have points in their names, so what follows this is one name. */
const SYSCTLS = "sysctls";

/** A path as the server writes it. */
export function stepsOf(path: string): (string | number)[] {
  const [way, parameter] = path.split(/\.sysctls\.(.*)/s);
  const steps = way!.split(".").map((step) => (/^\d+$/.test(step) ? Number(step) : step));
  return parameter === undefined ? steps : [...steps, SYSCTLS, parameter];
}

/** All fields of a text that are one word, by their paths, with what it says there; those that can be named so. */
export function fieldsOf(text: string): Map<string, string> {
  const found = new Map<string, string>();
  const add = (node: unknown, path: string) => {
    if (found.size >= FIELDS_MAX) return;
    if (isMap(node))
      for (const { key, value } of node.items) {
        const name = isScalar(key) ? String(key.value) : "";
        if (name && (!name.includes(".") || path.endsWith(`.${SYSCTLS}`))) add(value, path ? `${path}.${name}` : name);
      }
    else if (isSeq(node)) node.items.forEach((one, n) => add(one, `${path}.${n}`));
    else if (isScalar(node) && path && node.value !== null) found.set(path, node.source ?? String(node.value));
  };
  add(parseDocument(text).contents, "");
  return found;
}

export interface Parameter {
  /** Empty: as its field is called. */
  name: string;
  /** Paths with commas between them. */
  field: string;
  about: string;
}

/** What a parameter is called unless somebody says it: the last word of its field. */
export const usualName = (field: string): string => field.trim().split(".").at(-1)!;

export const nameOf = ({ name, field }: Parameter): string => name.trim() || usualName(field);

/** A name that several parameters have; undefined: none. */
export function nameTwice(parameters: readonly Parameter[]): string | undefined {
  const names = parameters.map(nameOf).filter(Boolean);
  return names.find((name, n) => names.indexOf(name) < n);
}

/** What a `template.yaml` says: JSON, which is YAML that no word can break out of. */
export function describeTemplate(title: string, parameters: readonly Parameter[]): string {
  const named: Record<string, { fields: string[]; about: string }> = Object.create(null);
  for (const one of parameters) {
    if (!one.field.trim()) continue;
    named[nameOf(one)] = { fields: one.field.split(",").map((path) => path.trim()), about: one.about };
  }
  return JSON.stringify({ title, parameters: named }, null, 1);
}
