// The JSON schema of labs, fetched once: what it says of a field is shown wherever somebody fills one in.
import { ask } from "../api/client";
import type { Schema } from "../editor/schema";

let asked: Promise<Schema | null> | null = null;

/** The schema; null: the server does not tell it now. */
export function labSchema(): Promise<Schema | null> {
  asked ??= ask<Schema>("GET", "/schema/lab").catch(() => (asked = null));
  return asked;
}
