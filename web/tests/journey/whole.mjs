// All that the page is for, in one go, on real guests, by a stranger who has no mouse: `node whole.mjs ORIGIN COOKIE`. From the
// link that lets them in to a template of the lab that they have drawn, run, worked in, changed, broken and captured.
import { demand, editor, open, post, run, until } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const boss = await open(origin, cookie);
await boss.page.goto(origin);
await post(boss.page, "/people", { name: "eve" });
const { url } = await post(boss.page, "/people/eve/link", {});
await boss.browser.close();
const { browser, page, complaints } = await open(origin, "nobody=yet");
const drawn = editor(page);
const dialog = page.getByRole("dialog");

/** How many times somebody presses Tab at most until they are where they want to be. */
const PRESSES_MAX = 60;

/** Goes somewhere by Tab alone, up or down, as whoever sees where it is; out of the text by Escape, as it says itself. */
async function reach(where) {
  await where.waitFor({ state: "attached" });
  for (let press = 0; press < PRESSES_MAX; press++) {
    const [isThere, isAbove, isInText] = await where.evaluate((element) => {
      const { activeElement: now } = document;
      const isAbove = Boolean(now.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING);
      return [element === now, isAbove, now.shadowRoot !== null];
    });
    if (isThere) return;
    if (isInText) await page.keyboard.press("Escape");
    await page.keyboard.press(isAbove ? "Shift+Tab" : "Tab");
  }
  throw new Error(`Tab does not lead to ${where}`);
}
async function press(where, key = "Enter") {
  await reach(where);
  await page.keyboard.press(key);
}
async function write(where, text) {
  await reach(where);
  await page.keyboard.press("Control+a");
  await page.keyboard.type(text);
}
const button = (name, within = page) => within.getByRole("button", { name, exact: true });

/** Goes to a view of the run by the arrows, as tabs are. */
async function view(name) {
  await reach(page.getByRole("tab", { selected: true }));
  const wanted = page.getByRole("tab", { name });
  while (!(await wanted.evaluate((tab) => tab === document.activeElement))) await page.keyboard.press("ArrowRight");
  await wanted.and(page.getByRole("tab", { selected: true })).waitFor();
}
/** Opens what is in the list of nodes and links. */
async function openListed(name) {
  await view("Overview");
  const list = page.locator("details").filter({ hasText: "Nodes and links as a list" });
  if ((await list.getAttribute("open")) === null) await press(list.locator("summary"));
  await press(button(name, list));
  await dialog.waitFor();
}

await run({
  "a link lets somebody in": async () => {
    await page.goto(url);
    await press(button("Log in"));
    await button("New lab").waitFor();
  },
  "five nodes are drawn and linked": async () => {
    await press(button("New lab"));
    await write(dialog.getByLabel("Name"), "mine");
    await press(button("Make it", dialog));
    await drawn.has(3, 2);
    await press(button("Add Host"));
    await press(button("Add Router"));
    await drawn.has(5, 2);
    for (const name of ["h1", "r1"]) {
      await press(page.getByRole("button", { name: "Links by pattern" }));
      await write(dialog.getByLabel("From each node that matches"), name);
      await write(dialog.getByLabel("To", { exact: true }), "router");
      await press(button("Make them", dialog));
    }
    await drawn.has(5, 4);
    await page.getByText("No mistakes").waitFor();
  },
  "the lab is kept, and runs for somebody to work in": async () => {
    await page.keyboard.press("Control+s");
    await page.getByText("v2 · Saved").waitFor();
    await press(button("Run and stay"));
    await page.waitForURL(/#\/run\//);
    await page.getByRole("button", { name: "Hold" }).and(page.locator(":enabled")).waitFor();
  },
  "a node is worked in, and left again": async () => {
    await openListed("h1");
    await press(button("Terminal", dialog));
    await page.getByText("h1 · open", { exact: true }).waitFor();
    // One types where one is put.
    await page.keyboard.type("ping -c 3 client\n");
    await page.locator(".xterm-accessibility").getByText("3 received").last().waitFor();
    await page.keyboard.press("Shift+Escape");
    await press(button("h1"));
  },
  "a link is changed while it runs": async () => {
    await openListed("h1:eth0--router:eth2");
    await write(dialog.getByLabel("delay", { exact: true }), "50ms");
    await press(button("Apply", dialog));
    await dialog.getByText("Takes effect at").waitFor();
    await page.keyboard.press("Escape");
  },
  "the network is partitioned, and whole again": async () => {
    await press(button("Break something"));
    await write(dialog.getByLabel("Group 1"), "h1");
    await write(dialog.getByLabel("Group 2"), "client");
    await page.keyboard.press("Enter");
    await press(page.getByRole("button", { name: /^Undo partition/ }));
    await page.getByText(/^over,/).waitFor();
  },
  "packets are captured, and the change is seen in them": async () => {
    // As long as the server has not answered, nothing goes on that could be stopped, and that is said.
    let letGo = () => undefined;
    const isLetGo = new Promise((resolve) => (letGo = resolve));
    await page.route(/\/capture\?/, async (route) => {
      await isLetGo;
      await route.continue();
    });
    await openListed("h1");
    await write(dialog.getByLabel("Filter of what is captured"), "icmp");
    await press(button("Capture", dialog));
    await page.getByText("The capture is about to begin").waitFor();
    demand((await button("Stop capturing").count()) === 0, "nothing goes on yet that could be stopped");
    letGo();
    await button("Stop capturing").waitFor();
    await view("Terminals");
    await page.getByText("h1 · open", { exact: true }).waitFor();
    await reach(page.getByRole("textbox", { name: "h1", exact: true }));
    await page.keyboard.type("ping -c 5 client\n");
    await page.keyboard.press("Shift+Escape");
    await view("Packets");
    await page.getByRole("cell", { name: "ICMP", exact: true }).nth(3).waitFor();
  },
  "it is ended, and there is a report": async () => {
    await press(button("■ Stop"));
    // Its one program had come to its end.
    await page
      .getByText(/^(finished|aborted)$/)
      .first()
      .waitFor();
    await view("Report");
    await page.frameLocator("iframe").getByRole("heading").first().waitFor();
  },
  "the lab becomes a template": async () => {
    await press(page.getByRole("link", { name: "Edit lab" }));
    await page.getByText("v2 · Saved").waitFor();
    await press(button("Save as template"));
    await press(button("Save", dialog));
    await page.getByRole("heading", { name: "Templates" }).waitFor();
    await button("New lab: mine").waitFor();
  },
  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
