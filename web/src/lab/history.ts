// Undo and redo: changes that can be reversed, of a text and of positions together. A change replaces one piece of the text
// and moves some nodes; typing at one place is one change until a line ends. Pure, and without a clock.

export type Spot = readonly [number, number];
export type Spots = Readonly<Record<string, Spot>>;

export interface Written {
  text: string;
  positions: Spots;
}

export interface Change {
  at: number;
  removed: string;
  inserted: string;
  moved: Record<string, [from: Spot | null, to: Spot | null]>;
}

export function changeBetween(before: Written, after: Written): Change {
  const [a, b] = [before.text, after.text];
  const most = Math.min(a.length, b.length);
  let at = 0;
  while (at < most && a[at] === b[at]) at++;
  let tail = 0;
  while (tail < most - at && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const moved: Change["moved"] = {};
  for (const node of new Set([...Object.keys(before.positions), ...Object.keys(after.positions)])) {
    const from = own(before.positions, node);
    const to = own(after.positions, node);
    if (from?.[0] !== to?.[0] || from?.[1] !== to?.[1]) set(moved, node, [from, to]);
  }
  return { at, removed: a.slice(at, a.length - tail), inserted: b.slice(at, b.length - tail), moved };
}

export function apply(to: Written, change: Change): Written {
  const { at, removed, inserted } = change;
  if (to.text.slice(at, at + removed.length) !== removed) throw new Error("a change of another text");
  const positions: Record<string, Spot> = { ...to.positions };
  for (const [node, [, spot]] of Object.entries(change.moved)) {
    if (spot) set(positions, node, spot);
    else delete positions[node];
  }
  return { text: to.text.slice(0, at) + inserted + to.text.slice(at + removed.length), positions };
}

export function reversed(change: Change): Change {
  const moved = Object.fromEntries(Object.entries(change.moved).map(([node, [from, to]]) => [node, [to, from]]));
  return { at: change.at, removed: change.inserted, inserted: change.removed, moved: moved as Change["moved"] };
}

function isNothing(change: Change): boolean {
  return !change.removed && !change.inserted && !Object.keys(change.moved).length;
}

function own(spots: Spots, node: string): Spot | null {
  return Object.hasOwn(spots, node) ? spots[node]! : null;
}

// A node may be called `__proto__`.
function set<T>(record: Record<string, T>, name: string, value: T): void {
  Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true });
}

export class History {
  private done: Change[] = [];
  private undone: Change[] = [];
  private isTyping = false;

  constructor(private now: Written) {}

  get present(): Written {
    return this.now;
  }

  get canUndo(): boolean {
    return this.done.length > 0;
  }

  get canRedo(): boolean {
    return this.undone.length > 0;
  }

  /** Goes on to something new. What is typed where the last typing ended belongs to it. */
  write(next: Written, isTyped = false): void {
    const change = changeBetween(this.now, next);
    this.now = next;
    if (isNothing(change)) return;
    const last = this.done.at(-1);
    const isMore =
      isTyped &&
      this.isTyping &&
      last !== undefined &&
      !change.removed &&
      !Object.keys(change.moved).length &&
      change.at === last.at + last.inserted.length &&
      !last.inserted.endsWith("\n");
    if (isMore) last.inserted += change.inserted;
    else this.done.push(change);
    this.isTyping = isTyped;
    this.undone = [];
  }

  undo(): Written {
    const change = this.done.pop();
    if (change) {
      this.now = apply(this.now, reversed(change));
      this.undone.push(change);
    }
    this.isTyping = false;
    return this.now;
  }

  redo(): Written {
    const change = this.undone.pop();
    if (change) {
      this.now = apply(this.now, change);
      this.done.push(change);
    }
    this.isTyping = false;
    return this.now;
  }
}
