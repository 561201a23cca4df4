// Several runs beside each other: their results by what was changed between them, as means with 95 % confidence intervals
// by Student's t, which takes runs of one group to be independent (as with seeds of their own). Pure.
import type { RunRecord } from "./record";

export interface Compared {
  run: string;
  number: number;
  /** Of its lab. */
  name: string;
  version: number;
  /** What counted instead of what the lab says, as PATH=VALUE. */
  settings: readonly string[];
  record: RunRecord | null;
}

export interface Metric {
  name: string;
  unit: string;
  value: number;
}

export interface Mean {
  mean: number;
  /** Half the width of the interval; null: of one run none is known. */
  half: number | null;
  count: number;
}

export interface Group {
  label: string;
  /** The same, with as much of each field's path as tells it from the others. */
  short: string;
  runs: Compared[];
}

export interface Row {
  metric: string;
  unit: string;
  /** One for each group; null: none of its runs has measured this. */
  means: (Mean | null)[];
}

const UNITS: Record<string, string> = {
  throughput: "bit/s",
  sent_throughput: "bit/s",
  outage: "s",
  jitter_s: "s",
  loss: "share",
  retransmits: "",
  requests: "",
  errors: "",
  requests_per_s: "",
  iops: "",
  packets_per_s: "",
};

/** The single numbers that a run's programs have measured, and its checks as 1 and 0. */
export function metricsOf(record: RunRecord): Metric[] {
  const found: Metric[] = [];
  for (const { name, result } of record.processes) {
    const take = (what: string, unit: string, value: unknown) => {
      if (typeof value === "number" && Number.isFinite(value)) found.push({ name: `${name} ${what}`, unit, value });
    };
    for (const [what, unit] of Object.entries(UNITS)) take(what, unit, result?.[what]);
    for (const group of ["rtt", "latency"]) {
      const values = result?.[group];
      if (values && typeof values === "object")
        for (const [what, value] of Object.entries(values)) take(`${group} ${what}`, "s", value);
    }
    const own = result?.["own"];
    if (own && typeof own === "object")
      for (const [what, one] of Object.entries(own as Record<string, { value?: unknown; unit?: unknown }>))
        take(what, one?.unit === "1" ? "" : String(one?.unit ?? ""), one?.value);
  }
  return found;
}

const T_975 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** The quantile of Student's t at 97.5 %, by the number of degrees of freedom; of many by its expansion. */
export function student(freedom: number): number {
  const z = 1.959964;
  return (
    T_975[freedom - 1] ?? z + (z ** 3 + z) / (4 * freedom) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2)
  );
}

export function meanOf(values: readonly number[]): Mean | null {
  const count = values.length;
  if (!count) return null;
  const mean = values.reduce((sum, one) => sum + one, 0) / count;
  if (count === 1) return { mean, half: null, count };
  const variance = values.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (count - 1);
  return { mean, half: student(count - 1) * Math.sqrt(variance / count), count };
}

/** Tells settings with as few of the last steps of their paths as tell the fields of all these runs from each other. */
export function shortener(runs: readonly Compared[]): (settings: readonly string[]) => string {
  const pathOf = (setting: string) => setting.slice(0, setting.indexOf("="));
  const paths = [...new Set(runs.flatMap((run) => run.settings.map(pathOf)))];
  const tail = (path: string, steps: number) => path.split(".").slice(-steps).join(".");
  const short = (path: string) => {
    let steps = 1;
    while (paths.some((other) => other !== path && tail(other, steps) === tail(path, steps))) steps++;
    return tail(path, steps);
  };
  const known = new Map(paths.map((path) => [path, short(path)]));
  return (settings) => settings.map((one) => known.get(pathOf(one)) + one.slice(one.indexOf("="))).join(", ");
}

/** Runs with the same lab, version and settings but for the seed are repeats of one another. */
export function groupsOf(runs: readonly Compared[]): Group[] {
  const names = new Set(runs.map((run) => run.name));
  const versions = new Set(runs.map((run) => `${run.name} ${run.version}`));
  const found = new Map<string, Group>();
  const short = shortener(runs);
  for (const run of runs) {
    const settings = run.settings.filter((one) => !one.startsWith("seed="));
    const key = JSON.stringify([run.name, run.version, [...settings].sort()]);
    const whose = [names.size > 1 ? run.name : "", versions.size > names.size ? `v${run.version}` : ""];
    const told = (what: string) => [...whose, what].filter(Boolean).join(" · ");
    const group = found.get(key) ?? { label: told(settings.join(", ")), short: told(short(settings)), runs: [] };
    group.runs.push(run);
    found.set(key, group);
  }
  return [...found.values()];
}

/** Each metric that some run has, in the order in which the first one has them. */
export function rowsOf(groups: readonly Group[]): Row[] {
  const rows = new Map<string, Row>();
  const values = new Map<string, number[][]>();
  groups.forEach((group, place) => {
    for (const run of group.runs) {
      for (const { name, unit, value } of run.record ? metricsOf(run.record) : []) {
        if (!rows.has(name)) rows.set(name, { metric: name, unit, means: [] });
        const of = values.get(name) ?? groups.map((): number[] => []);
        of[place]!.push(value);
        values.set(name, of);
      }
    }
  });
  for (const [name, row] of rows) row.means = values.get(name)!.map(meanOf);
  return [...rows.values()];
}

export function csvOfRows(groups: readonly Group[], rows: readonly Row[]): string {
  const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = rows.flatMap((row) =>
    row.means.flatMap((mean, place) =>
      mean
        ? [[quoted(row.metric), row.unit, quoted(groups[place]!.label), mean.mean, mean.half ?? "", mean.count].join()]
        : [],
    ),
  );
  return `${["metric,unit,group,mean,half_interval_95,runs", ...lines].join("\n")}\n`;
}
