// A capture that is read in a worker. Questions are answered in the order in which they are asked, and after what came before.
import type { Asked, Looked } from "./captured";
import type { Question } from "./capture.worker";
import type { Stream } from "./streams";

/** What is asked of a worker; a test has one of its own. */
export type Worked = Pick<Worker, "postMessage" | "onmessage" | "terminate">;

const begun = (): Worked => new Worker(new URL("./capture.worker.ts", import.meta.url), { type: "module" });

export class Reading {
  private readonly waiting = new Map<number, (said: unknown) => void>();
  private asked = 0;

  constructor(private readonly worker: Worked = begun()) {
    worker.onmessage = ({ data }) => {
      this.waiting.get(data.id)?.(data.said);
      this.waiting.delete(data.id);
    };
  }

  take(piece: Uint8Array<ArrayBuffer>): void {
    this.worker.postMessage({ id: 0, take: piece } satisfies Question, [piece.buffer]);
  }

  look(asked: Asked): Promise<Looked> {
    return this.ask((id) => ({ id, look: asked }));
  }

  follow(number: number): Promise<Stream> {
    return this.ask((id) => ({ id, follow: number }));
  }

  close(): void {
    this.worker.terminate();
  }

  private ask<Said>(question: (id: number) => Question): Promise<Said> {
    const id = ++this.asked;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve as (said: unknown) => void);
      this.worker.postMessage(question(id));
    });
  }
}
