// The tour of the first visit: offered until it was taken or refused, in this browser.

const KEY = "dilaton.tour";

class Tour {
  isOffered = $state(localStorage.getItem(KEY) === null);
  /** Which step is shown; -1: none. */
  step = $state(-1);

  begin(): void {
    this.refuse();
    this.step = 0;
  }

  refuse(): void {
    localStorage.setItem(KEY, "seen");
    this.isOffered = false;
  }

  next(of: number): void {
    this.step = this.step + 1 < of ? this.step + 1 : -1;
  }

  end(): void {
    this.step = -1;
  }
}

export const tour = new Tour();
