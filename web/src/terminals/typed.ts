// What is typed into a terminal while nobody is there to read it: kept up to a bound, and sent when somebody is. Pure.

/** More than anybody types before a connection is there; what is pasted may be more. */
export const KEPT_BYTES_MAX = 1 << 14;

/** Of how many commands what is pasted may be. */
export const linesIn = (text: string): number => text.trimEnd().split(/\r\n|\r|\n/).length;

export class Typed {
  private kept: Uint8Array<ArrayBuffer>[] = [];
  private length = 0;
  private isFull = false;

  /** Returns how many bytes are lost. Once some are, so is all that follows: half of a line is another command. */
  keep(bytes: Uint8Array<ArrayBuffer>): number {
    this.isFull ||= this.length + bytes.length > KEPT_BYTES_MAX;
    if (this.isFull) return bytes.length;
    this.kept.push(bytes);
    this.length += bytes.length;
    return 0;
  }

  /** All that is kept, for whoever reads it now. */
  take(): Uint8Array<ArrayBuffer>[] {
    const { kept } = this;
    this.kept = [];
    this.length = 0;
    this.isFull = false;
    return kept;
  }

  /** Nobody is to come any more; returns how many bytes are lost. */
  drop(): number {
    return this.take().reduce((sum, one) => sum + one.length, 0);
  }
}
