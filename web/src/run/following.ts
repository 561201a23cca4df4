// Files of a run that are followed while they grow: of each the newest, and no more of it than a browser bears.
import type { Output } from "./logs";
import { Turns } from "./turns";

export const KEPT_BYTES_MAX = 4 << 20;

/** A piece of a file from a byte on; empty where there is none. */
export type Piece = (file: string, start: number) => Promise<Uint8Array>;

export class Followed implements Output {
  bytes: Uint8Array = new Uint8Array();
  begin: number;
  private end: number;
  private turns = new Turns();

  /** `sizeBytes` is how long the file is, as far as that was told: what is far before its end is never read. */
  constructor(
    readonly file: string,
    readonly whose: string,
    sizeBytes: number,
    private readonly piece: Piece,
  ) {
    this.begin = this.end = Math.max(0, sizeBytes - KEPT_BYTES_MAX);
  }

  /** Takes what has come since. */
  read(): Promise<void> {
    return this.turns.take(() => this.readAll());
  }

  private async readAll(): Promise<void> {
    for (;;) {
      const piece = await this.piece(this.file, this.end);
      if (!piece.length) return;
      this.end += piece.length;
      const whole = new Uint8Array(this.bytes.length + piece.length);
      whole.set(this.bytes);
      whole.set(piece, this.bytes.length);
      this.bytes = whole.subarray(Math.max(0, whole.length - KEPT_BYTES_MAX));
      this.begin = this.end - this.bytes.length;
    }
  }
}
