// The parts of `run.json` that are shown; docs/run.schema.json has all of it.
import type { ClockChange } from "./happenings";

export interface Check {
  text: string;
  passed: boolean | null;
  value: number | null;
}

export interface Reason {
  level: string;
  what: string;
  value?: number | null;
  bound?: number | null;
  unit?: string;
  advice?: string;
}

export interface RunRecord {
  lab: string;
  state: string;
  reason: string | null;
  time: { drive: string; tdf: number; virtual_s: number; host_s: number };
  fidelity: {
    lateness_us: { p50: number; p99: number; p999: number; max: number };
    timers: number;
    busy: number | null;
    tdf_trace?: ClockChange[];
  } | null;
  verdict: { level: string; reasons: Reason[] } | null;
  /** Whose loss ended the run. */
  lost_machine?: string | null;
  guests: {
    name: string;
    machine?: string | null;
    fidelity?: { busy: number | null } | null;
    waits?: { waited_host_s: number } | null;
  }[];
  processes: {
    name: string;
    node: string;
    argv: string[];
    start_s: number | null;
    end_s: number | null;
    exit: number | null;
    signal: number | null;
    stopped: boolean;
    expected: boolean;
    outcome: string;
    result: Record<string, unknown> | null;
  }[];
  checks: Check[];
}
