// What the JSON schema of labs says of a place in one: the fields that may be there, with their help and values. Pure.

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  type?: string | string[];
  description?: string;
  default?: unknown;
}

export interface Field {
  name: string;
  help: string;
  /** All that it may be, where these are few words. */
  values: string[];
  isNested: boolean;
}

/** What a schema may mean, alternatives and references followed. */
function meanings(root: Schema, schema: Schema | undefined, depth = 0): Schema[] {
  if (!schema || depth > 8) return [];
  if (schema.$ref) return meanings(root, root.$defs?.[schema.$ref.split("/").at(-1)!], depth + 1);
  if (schema.anyOf) return schema.anyOf.flatMap((one) => meanings(root, one, depth + 1));
  return [schema];
}

function inside(root: Schema, schemas: Schema[], step: string | number): Schema[] {
  return schemas.flatMap((schema) => {
    if (typeof step === "number") return meanings(root, schema.items);
    const named = schema.properties && Object.hasOwn(schema.properties, step) ? schema.properties[step] : undefined;
    if (named) return meanings(root, named);
    return typeof schema.additionalProperties === "object" ? meanings(root, schema.additionalProperties) : [];
  });
}

export function schemasAt(root: Schema, path: readonly (string | number)[]): Schema[] {
  return path.reduce<Schema[]>((schemas, step) => inside(root, schemas, step), meanings(root, root));
}

export function fieldsAt(root: Schema, path: readonly (string | number)[]): Field[] {
  const found = new Map<string, Field>();
  for (const schema of schemasAt(root, path)) {
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      const all = meanings(root, field);
      found.set(name, {
        name,
        help: field.description ?? all.find((one) => one.description)?.description ?? "",
        values: all.flatMap((one) => one.enum ?? (one.const === undefined ? [] : [one.const])).map(String),
        isNested: all.some((one) => one.properties !== undefined),
      });
    }
  }
  return [...found.values()];
}

export function valuesAt(root: Schema, path: readonly (string | number)[]): string[] {
  return schemasAt(root, path)
    .flatMap((one) => one.enum ?? (one.const === undefined ? [] : [one.const]))
    .map(String);
}

/** The path of a place in a text in blocks, by its indentation; where a flow mapping is open, of what is inside it. */
export function pathAt(text: string, offset: number): (string | number)[] {
  const lines = text.slice(0, offset).split("\n");
  const current = lines.at(-1)!;
  const steps: (string | number)[] = [];
  let indent = /^ */.exec(current)![0].length + (/^ *- +/.test(current) ? /^ *(- +)/.exec(current)![1]!.length : 0);
  if (/^ *- /.test(current)) steps.unshift(0);
  let bound = /^ *- /.test(current) ? /^ */.exec(current)![0].length + 1 : indent;
  for (const line of lines.slice(0, -1).reverse()) {
    const key = /^( *)((?:- +)*)([^\s#:][^:#]*):(?: |$)/.exec(line);
    if (!key) continue;
    const [, space, dash, name] = key;
    const column = space!.length + dash!.length;
    if (column < bound) {
      steps.unshift(name!.trim().replace(/^["']|["']$/g, ""));
      bound = column;
    } else if (dash && column === bound && steps[0] !== 0) {
      steps.unshift(0);
      bound = space!.length + 1;
    }
    if (dash && column < indent && steps.length === 1) {
      steps.unshift(0);
      bound = space!.length + 1;
    }
    indent = Math.min(indent, bound);
    if (bound === 0) break;
  }
  const open = /([A-Za-z_][\w-]*): *(?:- *)?\{[^{}]*$/.exec(current);
  if (open && !/^ *- /.test(current)) steps.push(open[1]!);
  const inner = /\{[^{}]*?([A-Za-z_][\w-]*): *\{[^{}]*$/.exec(current);
  if (inner && /^ *- /.test(current)) steps.push(inner[1]!);
  return steps;
}
