// Asks the API. What is wrong comes back as problem details (RFC 9457) and is thrown as a Problem.
import type { Told } from "./types";

export const API = "/api/v1";

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    detail: string,
    readonly problems: Told[] = [],
    readonly more: Record<string, unknown> = {},
  ) {
    super(detail);
  }
}

/** Told when somebody is not logged in any more, whatever they have asked. */
export const leaving = new EventTarget();

async function answered(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(API + path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch {
    throw new Problem(0, "away", "the server does not answer");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) leaving.dispatchEvent(new Event("leave"));
  const text = await answer.text();
  try {
    const said = JSON.parse(text);
    throw new Problem(answer.status, String(said.type), String(said.detail), said.problems ?? [], said);
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(answer.status, "unknown", `${answer.status} ${answer.statusText}`);
  }
}

export async function ask<T = void>(method: string, path: string, body?: unknown): Promise<T> {
  const text = await (await answered(method, path, body)).text();
  return (text ? JSON.parse(text) : undefined) as T;
}

export async function text(path: string): Promise<string> {
  return (await answered("GET", path)).text();
}

/** The body of an answer while it comes, until it ends or is not wanted any more. */
export async function* pieces(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = (await answered("GET", path, undefined, signal)).body!.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

export async function bytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await (await answered("GET", path)).arrayBuffer());
}

/** What one may do with what is at a path, which may be another's. */
export async function permissionsAt(path: string): Promise<string[]> {
  return ask<string[]>("GET", `/session/permissions?path=${encodeURIComponent(path)}`);
}

export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
