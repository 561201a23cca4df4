// Questions to the server that are asked one after the other, where an answer that is late would undo a newer one.

export class Turns {
  private readonly waiting = new Map<string, () => Promise<void>>();
  private working: Promise<void> | null = null;

  /**
   * Has something asked when it is its turn, which must not throw. What waits already is asked once, as it is said last.
   * Ends when nothing waits any more.
   */
  take(key: string, question: () => Promise<void>): Promise<void> {
    this.waiting.set(key, question);
    return (this.working ??= this.work());
  }

  private async work(): Promise<void> {
    for (let next = this.next(); next; next = this.next()) await next();
    this.working = null;
  }

  private next(): (() => Promise<void>) | undefined {
    for (const [key, question] of this.waiting) {
      this.waiting.delete(key);
      return question;
    }
    return undefined;
  }
}
