// Work of which only one may be under way, as two at once would both take what has come since. Pure.

export class Turns {
  private last: Promise<unknown> = Promise.resolve();
  private next: Promise<void> | null = null;

  /** Does the work when what is under way is done; all who ask meanwhile share that one turn, and it sees what they ask for. */
  take(work: () => Promise<void>): Promise<void> {
    if (this.next) return this.next;
    const turn = this.last.then(() => {
      this.next = null;
      return work();
    });
    this.last = turn.catch(() => undefined);
    return (this.next = turn);
  }
}
