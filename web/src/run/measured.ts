// What a run that is over has measured, with the times in which something was broken: for who looks at several.
import { ask, bytes, text } from "../api/client";
import type { Drawing } from "../api/types";
import { bands, changes, readEvents, type Band } from "./happenings";
import { Reader, Samples } from "./samples";

export interface Measured {
  samples: Samples;
  bands: Band[];
}

export async function measuredBy(run: string): Promise<Measured> {
  const [drawing, events] = await Promise.all([
    ask<Drawing>("GET", `/runs/${run}/drawing`),
    text(`/runs/${run}/events`).then(readEvents, () => []),
  ]);
  const samples = new Samples();
  const piece = (guest: string, start: number) =>
    bytes(`/runs/${run}/samples?guest=${encodeURIComponent(guest)}&start=${start}`);
  if (drawing.interfaces_period_ns) await new Reader(samples, piece, () => {}).read(drawing.guests);
  return { samples, bands: [...bands(events), ...changes(events)] };
}
