// A program that is executed in a node, with what it reads and what it prints as bytes (docs/server.md): the streams of one
// session over a WebSocket. Neither side sends more than the other has said that it takes.
import { API } from "../api/client";
import { encoded, FrameReader, Kind, number, Stream, type Frame } from "./frames";

export interface Ended {
  status: number;
  output: Uint8Array;
  errors: string;
  /** Whether it has printed more than was asked for, which is not here. */
  isCut: boolean;
}

/** What a session takes of a WebSocket; a test has one of its own. */
export type Line = Pick<WebSocket, "send" | "close" | "binaryType" | "onopen" | "onmessage" | "onclose">;

const WINDOW_BYTES = 1 << 20;
const PIECE_BYTES = 1 << 16;
const ERRORS_BYTES_MAX = 1 << 16;

function connected(run: string): Line {
  return new WebSocket(`${location.origin.replace(/^http/, "ws")}${API}/runs/${run}/sessions`);
}

/** Executes a program in a node and waits for its end. At most `most` bytes of its output are taken; then it is hung up on. */
export function inNode(
  run: string,
  node: string,
  argv: readonly string[],
  options: { input?: Uint8Array; most?: number; connect?: (run: string) => Line } = {},
): Promise<Ended> {
  const { input = new Uint8Array(), most = 64 << 20, connect = connected } = options;
  const line = connect(run);
  return new Promise((resolve, reject) => {
    const session = new Session(line, input, most, resolve, reject);
    line.binaryType = "arraybuffer";
    line.onopen = () => line.send(JSON.stringify({ node, argv }));
    line.onmessage = (message) => session.take(message.data as string | ArrayBuffer);
    line.onclose = () => session.lose();
  });
}

class Session {
  private readonly frames = new FrameReader();
  private output: Uint8Array[] = [];
  private outputBytes = 0;
  private errors: Uint8Array[] = [];
  private errorsBytes = 0;
  private sent = 0;
  private granted = 0;
  private isInputOver = false;
  private refused = "";

  constructor(
    private readonly line: Line,
    private readonly input: Uint8Array,
    private readonly most: number,
    private readonly resolve: (ended: Ended) => void,
    private readonly reject: (error: Error) => void,
  ) {}

  take(message: string | ArrayBuffer): void {
    if (typeof message === "string") {
      if (message === "{}") this.begin();
      else this.refused = detailOf(message);
      return;
    }
    try {
      for (const frame of this.frames.take(new Uint8Array(message))) this.hear(frame);
    } catch (error) {
      this.fail(error as Error);
    }
  }

  lose(): void {
    this.fail(new Error(this.refused || "the connection to the node was lost"));
  }

  private begin(): void {
    for (const stream of [Stream.output, Stream.errors]) this.grant(stream, WINDOW_BYTES);
    this.pass();
  }

  private hear({ kind, stream, payload }: Frame): void {
    if (kind === Kind.data && stream === Stream.output) this.print(payload);
    else if (kind === Kind.data) {
      if (this.errorsBytes < ERRORS_BYTES_MAX) this.errors.push(payload);
      this.errorsBytes += payload.length;
      this.grant(Stream.errors, payload.length);
    } else if (kind === Kind.grant) {
      this.granted += numberIn(payload, 0);
      this.pass();
    } else if (kind === Kind.exited) this.end(numberIn(payload, 0), false);
    else if (kind === Kind.failed) this.fail(new Error(new TextDecoder().decode(payload.subarray(4))));
  }

  private print(payload: Uint8Array): void {
    const room = this.most - this.outputBytes;
    this.output.push(payload.subarray(0, room));
    this.outputBytes += Math.min(room, payload.length);
    if (payload.length > room) this.end(0, true);
    else this.grant(Stream.output, payload.length);
  }

  private grant(stream: Stream, bytes: number): void {
    this.line.send(encoded(Kind.grant, stream, number(bytes)));
  }

  private pass(): void {
    while (this.sent < this.input.length && this.granted > 0) {
      const length = Math.min(this.granted, PIECE_BYTES, this.input.length - this.sent);
      this.line.send(encoded(Kind.data, Stream.input, this.input.subarray(this.sent, this.sent + length)));
      this.sent += length;
      this.granted -= length;
    }
    if (this.sent < this.input.length || this.isInputOver) return;
    this.isInputOver = true;
    this.line.send(encoded(Kind.close, Stream.input));
  }

  private end(status: number, isCut: boolean): void {
    const errors = new TextDecoder().decode(joined(this.errors)).trim();
    this.resolve({ status, output: joined(this.output), errors, isCut });
    this.leave();
  }

  private fail(error: Error): void {
    this.reject(error);
    this.leave();
  }

  private leave(): void {
    this.line.onclose = this.line.onmessage = null;
    this.line.close();
  }
}

function numberIn(payload: Uint8Array, at: number): number {
  return new DataView(payload.buffer, payload.byteOffset, payload.byteLength).getUint32(at, true);
}

function detailOf(problem: string): string {
  try {
    return String(JSON.parse(problem).detail);
  } catch {
    return problem;
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
