// Quantities as people read them.

export function rate(bitPerS: number): string {
  return `${scaled(bitPerS, 1000, ["", "k", "M", "G", "T"])}bit/s`;
}

export function size(bytes: number): string {
  return `${scaled(bytes, 1000, ["", "k", "M", "G", "T"])}B`;
}

function scaled(value: number, step: number, prefixes: string[]): string {
  let place = 0;
  while (Math.abs(value) >= step * 0.9995 && place < prefixes.length - 1) {
    value /= step;
    place += 1;
  }
  const digits = place === 0 ? 0 : Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${prefixes[place]}`;
}

export function seconds(s: number, digits = 3): string {
  return `${s.toFixed(digits)} s`;
}

export function duration(ns: number): string {
  for (const [unit, length] of [
    ["s", 1e9],
    ["ms", 1e6],
    ["us", 1e3],
  ] as const) {
    if (ns >= length) return `${+(ns / length).toFixed(3)} ${unit}`;
  }
  return `${ns} ns`;
}

/** How long ago something was, in words of the browser's language. */
export function ago(thenMs: number, nowMs: number, language = "en"): string {
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const elapsedS = (thenMs - nowMs) / 1000;
  for (const [unit, length] of [
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
  ] as const) {
    if (Math.abs(elapsedS) >= length) return format.format(Math.trunc(elapsedS / length), unit);
  }
  return format.format(Math.trunc(elapsedS), "second");
}

/** A number with its unit, as it is read. */
export function quantity(value: number, unit: string): string {
  if (unit === "bit/s") return rate(value);
  if (unit === "share") return `${(100 * value).toPrecision(3)} %`;
  if (unit === "s") return Math.abs(value) >= 1 ? seconds(value) : `${(value * 1e3).toPrecision(4)} ms`;
  const digits = Number.isInteger(value) ? String(value) : value.toPrecision(4);
  return unit ? `${digits} ${unit}` : digits;
}

/** What a run needs, in a line. */
export function needsWords(
  needs: { cores: number; memory_bytes: number; disk_bytes?: number | null; host_s?: number | null },
  words: { cores: (n: number) => string; memory: string; disk: string; hostTime: string },
): string {
  return [
    words.cores(needs.cores),
    `${size(needs.memory_bytes)} ${words.memory}`,
    needs.disk_bytes == null ? "" : `${size(needs.disk_bytes)} ${words.disk}`,
    needs.host_s == null ? "" : `${needs.host_s} s ${words.hostTime}`,
  ]
    .filter(Boolean)
    .join(", ");
}
