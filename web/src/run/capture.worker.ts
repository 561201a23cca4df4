// Reads a capture beside the page, so that the page goes on meanwhile.
import { Captured, type Asked } from "./captured";

export type Question = { id: number; take: Uint8Array } | { id: number; look: Asked } | { id: number; follow: number };

const captured = new Captured();

onmessage = ({ data }: MessageEvent<Question>) => {
  if ("take" in data) captured.take(data.take);
  else postMessage({ id: data.id, said: "look" in data ? captured.look(data.look) : captured.follow(data.follow) });
};
