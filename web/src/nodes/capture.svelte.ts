// Packets that pass an interface of a run that goes on, while they pass: what the server sends of them, kept here.
import { pieces, words } from "../api/client";
import { Reading } from "../run/reading";

/** More is not kept; the program `dilaton capture` takes it to a file. */
export const CAPTURED_BYTES_MAX = 64 << 20;

/** It is asked for; packets that pass are captured; it is over. */
export type CaptureState = "beginning" | "going" | "over";

export class LiveCapture {
  readonly reading = new Reading();
  /** Another number whenever there are more packets. */
  sampled = $state(0);
  state = $state<CaptureState>("beginning");
  isFull = $state(false);
  wrong = $state("");
  private parts: Uint8Array<ArrayBuffer>[] = [];
  private readonly stopping = new AbortController();
  private isDue = false;

  constructor(
    run: string,
    readonly place: string,
    readonly filter: string,
  ) {
    const asked = new URLSearchParams({ place, ...(filter ? { filter } : {}) });
    void this.follow(`/runs/${run}/capture?${asked}`);
  }

  get label(): string {
    return this.filter ? `${this.place} ${this.filter}` : this.place;
  }

  stop(): void {
    this.state = "over";
    this.stopping.abort();
  }

  close(): void {
    this.stop();
    this.reading.close();
  }

  file(): Blob {
    return new Blob(this.parts, { type: "application/x-pcapng" });
  }

  private async follow(path: string): Promise<void> {
    let length = 0;
    try {
      for await (const piece of pieces(path, this.stopping.signal)) {
        // The head of the file is written as soon as the interface is listened to, and not before.
        if (this.state === "beginning") this.state = "going";
        length += piece.length;
        this.parts.push(piece.slice());
        this.reading.take(piece.slice());
        this.show();
        if (length > CAPTURED_BYTES_MAX) {
          this.isFull = true;
          this.stop();
        }
      }
    } catch (error) {
      // Who stops it leaves, and is told nothing of that.
      if (this.state !== "over") this.wrong = words(error);
    }
    this.state = "over";
  }

  /** Packets come by the thousand: they are shown together. */
  private show(): void {
    if (!this.isDue) setTimeout(() => ((this.isDue = false), this.sampled++), 200);
    this.isDue = true;
  }
}
