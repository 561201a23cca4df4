// A lab is drawn and written: `node drawing.mjs ORIGIN COOKIE`.
import { demand, demandAccessible, editor, open, post, run, until } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie);
const drawn = editor(page);

await run({
  "a lab is made of a starting point": async () => {
    await page.goto(origin);
    await page.getByRole("button", { name: "New lab" }).click();
    await page.getByLabel("Name").fill("drawn");
    await demandAccessible(page, "new lab");
    await page.getByRole("button", { name: "Make it" }).click();
    await drawn.has(3);
    for (const width of [400, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      await until(`all of it is seen at ${width} pixels`, () =>
        drawn.canvas.evaluate(({ _cyreg }) => {
          // Drawn as soon as what draws was fetched.
          if (!_cyreg) return false;
          const { cy } = _cyreg;
          const { x1, x2, y1, y2 } = cy.elements().renderedBoundingBox();
          return x1 >= 0 && y1 >= 0 && x2 <= cy.width() && y2 <= cy.height() && cy.width() < innerWidth;
        }),
      );
    }
  },

  "what is drawn is written, and what is written is drawn": async () => {
    await page.getByRole("button", { name: "Add Router" }).click();
    await page.getByRole("button", { name: "Add Host" }).click();
    await drawn.has(5);
    await drawn.text.getByText("r1: {kind: router}").waitFor();
    // A sixth, typed into the text.
    await page.getByText("h1:", { exact: true }).click();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.keyboard.type("typed: {kind: switch}");
    await drawn.has(6);
    await drawn.canvas.focus();
    await page.keyboard.press("Control+z");
    await drawn.has(5);
    await page.keyboard.press("Control+y");
    await drawn.has(6);
    await page.keyboard.press("Control+z");
    await drawn.text.getByText("# the bottleneck").waitFor();
  },

  "a node is of an image, and is put into a group": async () => {
    await page.getByLabel("Add More").selectOption({ label: "Of an image …" });
    await page.getByRole("dialog").getByLabel("Image").fill("debian:12");
    await page.getByRole("button", { name: "Add it" }).click();
    await drawn.text.getByText("{image: debian:12}").waitFor();
    await page.getByRole("button", { name: "Group …" }).click();
    await demandAccessible(page, "a group");
    await page.getByLabel("Name of the group").fill("containers");
    await page.getByRole("button", { name: "Put them into it" }).click();
    await drawn.text.getByText("{image: debian:12, group: containers}").waitFor();
    await drawn.text.getByText("containers: {}").waitFor();
    for (let step = 0; step < 2; step++) await page.getByRole("button", { name: "Undo" }).click();
    await drawn.has(5);
  },

  "a node is dragged to its place": async () => {
    const box = await drawn.canvas.boundingBox();
    const lines = await drawn.text.innerText();
    await page
      .getByRole("button", { name: "Add Switch" })
      .dragTo(drawn.canvas, { targetPosition: { x: box.width - 60, y: 60 } });
    await drawn.has(6);
    await drawn.text.getByText("s1: {kind: switch}").or(drawn.text.getByText("switch1: {kind: switch}")).waitFor();
    await drawn.canvas.focus();
    await page.keyboard.press("Control+z");
    await until("undone", async () => (await drawn.text.innerText()) === lines);
  },

  "links are drawn from node to node": async () => {
    await page.getByRole("button", { name: "Draw links" }).click();
    const [nodes, links] = await drawn.counted();
    const box = await drawn.canvas.boundingBox();
    // What was found is in the middle.
    const middle = [box.x + box.width / 2, box.y + box.height / 2];
    for (const name of ["h1", "r1"]) {
      await drawn.find(name);
      await page.mouse.click(...middle);
    }
    await drawn.has(nodes, links + 1);
    await drawn.text.getByText("- {endpoints: [h1, r1]}").waitFor();
    await page.getByRole("button", { name: "Links by pattern" }).click();
    await page.getByLabel("From each node that matches").fill("r1");
    await demandAccessible(page, "links by pattern");
    await page.getByLabel("To", { exact: true }).fill("router");
    await page.getByRole("button", { name: "Make them" }).click();
    await drawn.has(nodes, links + 2);
    // And by dragging from the one to the other.
    await page.getByRole("button", { name: "Fit" }).click();
    const place = (name) =>
      drawn.canvas.evaluate(({ _cyreg: { cy } }, id) => cy.getElementById(id).renderedPosition(), `n:${name}`);
    for (const [step, name] of ["h1", "client"].entries()) {
      const { x, y } = await place(name);
      await page.mouse.move(box.x + x, box.y + y, { steps: 5 });
      await (step ? page.mouse.up() : page.mouse.down());
    }
    await drawn.has(nodes, links + 3);
    await drawn.text.getByText("- {endpoints: [h1, client]}").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await drawn.has(nodes, links + 2);
    await page.getByRole("button", { name: "Draw links" }).click();
  },

  "names that are too small to be read are left out, but for that of what is pointed at": async () => {
    await drawn.canvas.focus();
    for (let press = 0; press < 15; press++) await page.keyboard.press("-");
    const having = (name) =>
      drawn.canvas.evaluate(({ _cyreg: { cy } }, has) => cy.nodes(`.${has}`).map((one) => one.data("name")), name);
    const [nodes] = await drawn.counted();
    await until("no name is drawn", async () => (await having("crowded")).length === nodes);
    const box = await drawn.canvas.boundingBox();
    const { x, y } = await drawn.canvas.evaluate(({ _cyreg: { cy } }) => cy.getElementById("n:h1").renderedPosition());
    await page.mouse.move(box.x + x, box.y + y, { steps: 3 });
    await until("that of what is pointed at is", async () => String(await having("named")) === "h1");
    await page.keyboard.press("0");
    await until("all are drawn again", async () => (await having("crowded")).length < nodes);
  },

  "mistakes are told at once, at the field too": async () => {
    await drawn.find("h1");
    const kind = page.getByLabel("kind", { exact: true });
    await kind.fill("spaceship");
    await kind.press("Tab");
    await page.getByRole("status").getByText("1 mistake").waitFor();
    await until("the field is marked", async () => (await kind.getAttribute("aria-invalid")) === "true");
    await demandAccessible(page, "editor");
    await kind.fill("");
    await kind.press("Tab");
    await page.getByText("No mistakes").waitFor();
    // Beside Run is what a run is likely to take, and nothing while the lab has mistakes.
    await page.getByText("0.5 s · TDF as needed").waitFor();
  },

  "it is kept, and is as it was when one comes back": async () => {
    await page.keyboard.press("Control+s");
    await page.getByText("v2 · Saved").waitFor();
    await page.reload();
    await drawn.has(5);
    await drawn.text.getByText("# the bottleneck").waitFor();
  },

  "a network is generated, and a part of it chosen, put into a row and moved, by the keyboard alone": async () => {
    const { lab } = await post(page, "/labs", { name: "keys", text: "name: keys\n" });
    await page.goto(`${origin}/#/lab/${lab}`);
    await drawn.has(0);
    const tabTo = async (wanted, key = "Tab") => {
      await wanted.waitFor();
      const isThere = () => wanted.evaluate((element) => element === document.activeElement);
      for (let tries = 0; tries < 60 && !(await isThere()); tries++) await page.keyboard.press(key);
      demand(await isThere(), `${wanted} is not reached by ${key}`);
    };
    const button = (name) => page.getByRole("button", { name, exact: true });
    const chosen = (words) => page.getByRole("status").getByText(words).waitFor();
    const places = () =>
      drawn.canvas.evaluate(({ _cyreg: { cy } }) => cy.nodes(":selected").map((node) => ({ ...node.position() })));
    await tabTo(button("Generate …"));
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Generate a network" });
    await tabTo(dialog.getByLabel("Network"));
    await page.keyboard.type("grid");
    await tabTo(dialog.getByLabel("hosts"));
    await demandAccessible(page, "a network to generate");
    await page.keyboard.press("Enter");
    await drawn.has(9, 12);
    await drawn.text.getByText("generate: grid").waitFor();
    await tabTo(page.getByLabel("Arrange"));
    await page.keyboard.type("Grid");
    await tabTo(drawn.canvas);
    await page.keyboard.press("Control+a");
    await chosen("9 nodes chosen");
    await page.keyboard.press("Escape");
    // From the one at the upper left: a box of two columns and two rows.
    await page.keyboard.press("Control+ArrowRight");
    await chosen("1 node chosen");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Shift+ArrowDown");
    await chosen("4 nodes chosen");
    const before = await places();
    demand(new Set(before.map(({ y }) => y)).size === 2, "two rows are chosen");
    await tabTo(button("In a row"), "Shift+Tab");
    await page.keyboard.press("Enter");
    await until("one row", async () => new Set((await places()).map(({ y }) => y)).size === 1);
    const [{ x }] = await places();
    await tabTo(drawn.canvas);
    await page.keyboard.press("Control+Shift+ArrowRight");
    await until("they are moved", async () => (await places())[0].x > x);
    await page.keyboard.press("Control+z");
    await page.keyboard.press("Control+z");
    await until("as before", async () => JSON.stringify(await places()) === JSON.stringify(before));
    await demandAccessible(page, "nodes that are chosen");
    // Who came into the text by Tab leaves it, too.
    const isInText = () => drawn.text.evaluate((text) => text.getRootNode().activeElement === text);
    for (let tries = 0; tries < 10 && !(await isInText()); tries++) await page.keyboard.press("Tab");
    demand(await isInText(), "the text is reached");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    demand(!(await isInText()), "the text is left");
    await page.keyboard.press("Control+s");
    await page.getByText("v2 · Saved").waitFor();
  },

  "what a lab does at instants is dragged to others, and its text says so": async () => {
    const text = `name: broken
nodes: {a: {}, b: {}}
links: [a -- b]
run:
  - {on: a, exec: ping -c 8 -i 1 b}
faults:
  - {name: cut, at: 4s, for: 2s, link: a -- b, down: true}   # the outage
  - {name: "<b>${"long ".repeat(60)}", after: cut, wait: 1s, for: 500ms, pause: b}
`;
    await post(page, "/labs", { name: "broken", text });
    await page.goto(`${origin}/#/labs`);
    await page.getByRole("link", { name: "broken" }).click();
    const begin = page.getByRole("slider", { name: "When cut begins" });
    const end = page.getByRole("slider", { name: "How long cut lasts" });
    const says = (slider, value) => until(value, async () => (await slider.getAttribute("aria-valuetext")) === value);
    await says(begin, "4s");
    // By the keyboard, a step each, and ten.
    await begin.press("ArrowRight");
    await begin.press("PageUp");
    const moved = await begin.getAttribute("aria-valuetext");
    demand(moved !== "4s", "an arrow moves the fault");
    await drawn.text.getByText(`at: ${moved}`).waitFor();
    await drawn.text.getByText("# the outage").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await says(begin, "4s");
    // By the pointer: what waits for the fault goes with it, and its length is its right edge.
    const drag = async (slider, bySeconds) => {
      await page.getByText("Checking …").waitFor({ state: "detached" });
      await slider.scrollIntoViewIfNeeded();
      const track = await page.locator(".track").first().boundingBox();
      const by = (track.width * bySeconds) / Number(await slider.getAttribute("aria-valuemax"));
      const box = await slider.boundingBox();
      const [x, y] = [box.x + Math.min(box.width / 2, 5), box.y + box.height / 2];
      await page.mouse.move(x, y);
      await page.mouse.down();
      await page.mouse.move(x + by / 2, y);
      await page.mouse.move(x + by, y);
      await page.mouse.up();
    };
    await drag(begin, -2);
    await says(begin, "2s");
    await drag(end, 1);
    await says(end, "3s");
    await drawn.text.getByText("at: 2s, for: 3s").waitFor();
    await page.getByRole("slider", { name: "When <b>long" }).waitFor();
    await demandAccessible(page, "schedule of a lab");
    await page.keyboard.press("Control+s");
    await page.getByText("v2 · Saved").waitFor();
  },

  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
