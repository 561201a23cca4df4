import { expect, test } from "vitest";
import { Turns } from "../src/state/turns";

/** An answer that comes when it is let. */
function answer(): { come: () => void; came: Promise<void> } {
  let come = () => {};
  const came = new Promise<void>((resolve) => (come = resolve));
  return { come, came };
}

test("what is told while an answer is on its way is asked for after it", async () => {
  const turns = new Turns();
  const said: string[] = [];
  const list = answer();
  const asking = turns.take("all", async () => {
    said.push("all is asked");
    await list.came;
    said.push("all is there");
  });
  const told = turns.take("lab 1", async () => void said.push("lab 1"));
  await Promise.resolve();
  expect(said).toEqual(["all is asked"]);
  list.come();
  await Promise.all([asking, told]);
  expect(said).toEqual(["all is asked", "all is there", "lab 1"]);
});

test("what waits and is told again is asked once, as it was told last", async () => {
  const turns = new Turns();
  const said: string[] = [];
  const first = answer();
  const done = turns.take("a", () => first.came);
  for (const what of ["b then", "b now"]) void turns.take("b", async () => void said.push(what));
  void turns.take("a", async () => void said.push("a again"));
  first.come();
  await done;
  expect(said).toEqual(["b now", "a again"]);
  await turns.take("c", async () => void said.push("c"));
  expect(said.at(-1)).toBe("c");
});
