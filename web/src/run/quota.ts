// What somebody may use without being asked, as it is read and as it is written. Pure.
import type { Me } from "../api/types";
import { size } from "./units";

export type Quota = Me["quota"];

/** The bounds, each with its field in what is told, that in what is asked, and how it is read. */
export const BOUNDS = [
  { told: "at_once", asked: "at_once", read: String, written: String, example: "2" },
  { told: "cores", asked: "cores", read: String, written: String, example: "4" },
  { told: "memory_bytes", asked: "memory", read: size, written: asSize, example: "4GiB" },
  { told: "disk_bytes", asked: "disk", read: size, written: asSize, example: "10GiB" },
  { told: "host_s", asked: "host_time", read: (s: number) => `${s} s`, written: (s: number) => `${s}s`, example: "1h" },
  { told: "saved_bytes", asked: "saved", read: size, written: asSize, example: "20GiB" },
  { told: "images_bytes", asked: "images", read: size, written: asSize, example: "50GiB" },
] as const;

export type Bound = (typeof BOUNDS)[number]["told"];

/** A size as a lab writes it, exactly. */
function asSize(bytes: number): string {
  for (const [unit, length] of [
    ["GiB", 1 << 30],
    ["MiB", 1 << 20],
    ["GB", 1e9],
    ["MB", 1e6],
  ] as const) {
    if (bytes && bytes % length === 0) return `${bytes / length}${unit}`;
  }
  return `${bytes}B`;
}

/** What is asked for by fields as somebody has filled them in; one that is empty is no bound. */
export function askedQuota(fields: Readonly<Record<string, string>>): Record<string, string | number> {
  return Object.fromEntries(
    BOUNDS.flatMap(({ asked, written }) => {
      const said = fields[asked]?.trim();
      if (!said) return [];
      // What is a number is sent as one; what is none is answered with what is accepted.
      return [[asked, written === String && /^\d+$/.test(said) ? Number(said) : said]];
    }),
  );
}
