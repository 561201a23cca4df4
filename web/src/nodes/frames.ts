// The frames of a session, as crates/agent/PROTOCOL.md defines them. Pure.

export const enum Kind {
  data = 2,
  grant = 3,
  close = 4,
  failed = 7,
  exited = 8,
}

export const enum Stream {
  input = 0,
  output = 1,
  errors = 2,
}

export interface Frame {
  kind: number;
  stream: number;
  payload: Uint8Array;
}

const HEADER_BYTES = 12;
const PAYLOAD_BYTES_MAX = 4 << 20;

/** The one that a connection carries. */
const SESSION = 1;

export function encoded(kind: number, stream: number, payload: Uint8Array = new Uint8Array()): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, SESSION, true);
  view.setUint8(4, kind);
  view.setUint8(5, stream);
  view.setUint32(8, payload.length, true);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

export function number(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** Frames out of bytes that come cut anywhere. */
export class FrameReader {
  private rest = new Uint8Array();

  /** The frames that are whole by now; it throws where what comes is none. */
  take(bytes: Uint8Array): Frame[] {
    const whole = new Uint8Array(this.rest.length + bytes.length);
    whole.set(this.rest);
    whole.set(bytes, this.rest.length);
    const view = new DataView(whole.buffer);
    const found: Frame[] = [];
    let at = 0;
    while (at + HEADER_BYTES <= whole.length) {
      const length = view.getUint32(at + 8, true);
      if (length > PAYLOAD_BYTES_MAX) throw new Error(`${length} bytes: more than a frame has`);
      if (at + HEADER_BYTES + length > whole.length) break;
      const payload = whole.slice(at + HEADER_BYTES, at + HEADER_BYTES + length);
      found.push({ kind: view.getUint8(at + 4), stream: view.getUint8(at + 5), payload });
      at += HEADER_BYTES + length;
    }
    this.rest = whole.slice(at);
    return found;
  }
}
