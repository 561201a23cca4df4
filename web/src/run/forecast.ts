// What a run is likely to take, as the server tells it of a lab beforehand. Pure.
import type { Drawing } from "../api/types";
import { seconds } from "./units";

export interface ForecastWords {
  virtual: (time: string, isEarliest: boolean) => string;
  host: (time: string) => string;
  tdf: (tdf: number | null) => string;
}

/** In a line: virtual time, host time, and TDF; what nobody can tell is left out. */
export function forecastWords(
  { virtual_s, is_earliest, host_s, tdf }: Drawing["forecast"],
  say: ForecastWords,
): string {
  return [
    virtual_s == null ? "" : say.virtual(seconds(virtual_s, virtual_s < 10 ? 1 : 0), is_earliest ?? false),
    host_s == null ? "" : say.host(roughly(host_s)),
    say.tdf(tdf ?? null),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** A duration that is known within a factor of two. */
function roughly(s: number): string {
  if (s < 100) return `${+s.toPrecision(s < 10 ? 1 : 2)} s`;
  return s < 5400 ? `${Math.round(s / 60)} min` : `${+(s / 3600).toPrecision(2)} h`;
}
