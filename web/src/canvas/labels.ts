// Which of the words of a drawing are drawn, where there is no room for all: none over another one, nor over a node. Pure.
//
// As on a map, words are placed one after the other, the most important first, and one that would lie on something is left
// out; it is there again where somebody looks closer. To tell whether a place is taken, the ground is divided into cells: a
// word lies along its link, at any angle, and is seen as a row of squares as high as it is.

export interface Label {
  id: string;
  /** Its middle, on the screen. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** In radians; 0: from left to right. */
  angle: number;
}

export interface Disc {
  x: number;
  y: number;
  radius: number;
}

const CELL = 4;

/** By how much less than their size words and nodes take, so that those that only touch are both drawn. */
const SLACK = 1;

/** Those that have room, of labels from the most important to the least. */
export function withRoom(labels: readonly Label[], nodes: readonly Disc[]): Set<string> {
  const taken = new Set<string>();
  for (const { x, y, radius } of nodes) for (const cell of cellsOf(x, y, radius - SLACK)) taken.add(cell);
  const found = new Set<string>();
  for (const label of labels) {
    const cells = [...squaresOf(label)].flatMap(([x, y]) => [...cellsOf(x, y, label.height / 2 - SLACK)]);
    if (cells.some((cell) => taken.has(cell))) continue;
    for (const cell of cells) taken.add(cell);
    found.add(label.id);
  }
  return found;
}

/** The middles of squares that cover a label. */
function* squaresOf({ x, y, width, height, angle }: Label): Iterable<[number, number]> {
  const along = Math.max(0, width - height);
  const count = Math.ceil(along / height);
  for (let n = 0; n <= count; n++) {
    const from = count ? along * (n / count - 0.5) : 0;
    yield [x + from * Math.cos(angle), y + from * Math.sin(angle)];
  }
}

function* cellsOf(x: number, y: number, half: number): Iterable<string> {
  const [left, right] = [Math.floor((x - half) / CELL), Math.floor((x + half) / CELL)];
  const [top, bottom] = [Math.floor((y - half) / CELL), Math.floor((y + half) / CELL)];
  for (let column = left; column <= right; column++) for (let row = top; row <= bottom; row++) yield `${column},${row}`;
}
