// The pictures of the page's document: `node pictures.mjs ORIGIN COOKIE DIRECTORY`, on a server with real guests. Each view
// wide and narrow, in light and dark, as VIEW-WIDTH-THEME.png.
import { readFileSync } from "node:fs";
import { demand, editor, open, post, run } from "./browser.mjs";

const [origin, cookie, directory] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie, { deviceScaleFactor: 1 });
page.setDefaultTimeout(600_000);

/** Pictures of what is shown now, dialogs and all, with something in the middle where it is said. */
async function picture(view, middle) {
  for (const [width, height] of [
    [1280, 800],
    [400, 800],
  ]) {
    await page.setViewportSize({ width, height });
    for (const theme of ["light", "dark"]) {
      // By the button, which a dialog may be above.
      await page.evaluate((wanted) => {
        if (document.documentElement.dataset.theme !== wanted)
          document.querySelector("button:has(> [aria-hidden]):is([title*='ark'], [title*='ight'])").click();
      }, theme);
      // Drawings are put in place after their data are there.
      await page.waitForTimeout(1200);
      await middle?.evaluate((part) => part.scrollIntoView({ block: "center" }));
      await page.screenshot({ path: `${directory}/${view}-${width}-${theme}.png` });
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}

/** Waits until the clock of a run shows so many seconds. */
async function reached(virtualS) {
  while (Number.parseFloat(await page.locator("dd").first().textContent()) < virtualS) await page.waitForTimeout(500);
}

await run({
  "a network runs": async () => {
    await page.goto(origin);
    await page.getByRole("button", { name: "Run the first network" }).click();
    await page.getByText("1 of 3").waitFor();
    await page.evaluate(() => localStorage.setItem("dilaton.tour", "seen"));
    await page.getByRole("button", { name: "Close" }).first().click();
    await reached(8);
    await page.getByRole("button", { name: "Hold" }).click();
    await page.getByRole("button", { name: "Release" }).waitFor();
    await picture("run");
    const dialog = page.getByRole("dialog", { name: "Break something" });
    await page.getByRole("button", { name: "Break something" }).click();
    for (const [view, kind, ...filled] of [
      ["kill", "kill", ["Program", "bob/sink"], ["restart", "500ms"]],
      ["load", "load", ["Node", "alice"], ["to", "bob"], ["http", "200/s"], ["For", "5s"]],
      ["drawn", "random", ["every", "exponential 20s"], ["for", "uniform 1s..5s"], ["Draw them for", "2min"]],
    ]) {
      await dialog.getByLabel("Fault").selectOption(kind);
      for (const [label, text] of filled) await dialog.getByLabel(label, { exact: true }).fill(text);
      // What the lab language says of the fields, which is fetched.
      await dialog.locator(".help", { hasText: /./ }).first().waitFor();
      await picture(view);
    }
    await page.keyboard.press("Escape");
    await page.getByRole("tab", { name: "Schedule" }).click();
    await page.getByRole("row", { name: "alice/bulk" }).first().waitFor();
    await picture("schedule");
    await page.getByRole("tab", { name: "Plots" }).click();
    await page.locator(".u-over").first().waitFor();
    await picture("plots");
    await page.getByRole("tab", { name: "Packets" }).click();
    await page.getByRole("cell").first().waitFor();
    await page.getByRole("button", { name: "1", exact: true }).click();
    await page.locator(".layers details[open] button").first().click();
    await picture("packets");
    await page.getByRole("tab", { name: "Logs" }).click();
    await page.getByText(/^\d+ lines$/).waitFor();
    await picture("logs");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("aborted", { exact: true }).first().waitFor();
  },
  "nodes are worked in, and their files looked at": async () => {
    // What does so runs in the nodes, so their clock goes.
    const lab = (await page.getByRole("link", { name: "Edit lab" }).getAttribute("href")).split("/").at(-1);
    const { run: going } = await post(page, `/labs/${lab}/runs`, { stays: true });
    await page.goto(`${origin}/#/run/${going}`);
    await page.getByRole("button", { name: "Hold" }).and(page.locator(":enabled")).waitFor();
    await page.getByRole("tab", { name: "Terminals" }).click();
    for (const [node, typed, last] of [
      ["alice", "ping -c 3 bob", "rtt min"],
      ["bob", "ip route", "default via"],
    ]) {
      await page.getByLabel("Node").selectOption(node);
      await page.getByRole("button", { name: "Open a terminal" }).click();
      await page.getByText(`${node} · open`, { exact: true }).waitFor();
      await page.getByRole("textbox", { name: node }).focus();
      await page.keyboard.type(`${typed}\n`);
      await page.locator(".xterm-accessibility").getByText(last).last().waitFor();
    }
    await page.getByLabel("Side by side").check();
    await picture("terminals");
    await page.getByRole("tab", { name: "Overview" }).click();
    await page.getByText("Nodes and links as a list").click();
    await page.getByRole("button", { name: "alice", exact: true }).press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Files", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "etc/" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "passwd", exact: true }).waitFor();
    await picture("files");
    await post(page, `/runs/${going}/stop`);
  },
  "a run is spread over machines": async () => {
    const text = `name: cities
guests: per-node
placement: {rome: 1}
nodes: {oslo: {}, wien: {kind: router}, rome: {}}
links:
  - {endpoints: [oslo, wien], delay: 15ms, rate: 100Mbit}
  - {endpoints: [wien, rome], delay: 10ms, rate: 100Mbit}
run:
  - {on: rome, name: web, exec: python3 -m http.server 8000, background: true}
  - {on: oslo, name: ping, exec: ping -c 100000 rome, background: true}
`;
    const { lab } = await post(page, "/labs", { name: "cities", text });
    const { run: going } = await post(page, `/labs/${lab}/runs`, { stays: true, machines: 2 });
    await page.goto(`${origin}/#/run/${going}`);
    await page
      .getByText(/works \d+ %, waits \d+ %/)
      .first()
      .waitFor();
    await picture("machines", page.getByRole("heading", { name: "Machines" }));
    await post(page, `/runs/${going}/stop`);
    const { run: here } = await post(page, `/labs/${lab}/runs`, { stays: true });
    await page.goto(`${origin}/#/run/${here}`);
    const guests = page.getByRole("heading", { name: "Guests" });
    await guests.waitFor();
    await reached(2);
    await picture("guests", guests);
    await post(page, `/runs/${here}/stop`);
  },
  "a sweep is compared": async () => {
    const text = `name: window
nodes: {client: {}, server: {}, middle: {kind: router}}
links:
  - {endpoints: [client, middle], delay: 10ms, rate: 100Mbit}
  - {endpoints: [middle, server], rate: 20Mbit, loss: 1%}
run:
  - {on: server, name: sink, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: client, name: bulk, exec: iperf3 -c server -t 2 -J, after: [sink]}
measure: {interfaces: 100ms}
`;
    const { lab } = await post(page, "/labs", { name: "window", text });
    const ids = [];
    for (const loss of ["0.1%", "2%"])
      for (const seed of [1, 2, 3]) {
        const overrides = { settings: [`links.1.loss=${loss}`, `seed=${seed}`] };
        ids.push((await post(page, `/labs/${lab}/runs`, { overrides })).run);
      }
    await page.goto(`${origin}/#/compare/${ids.join(",")}`);
    await page.getByText("6 of 6 runs over").waitFor();
    await page.locator(".u-over").first().waitFor();
    await picture("compare");
    await page.goto(`${origin}/#/run/${ids[0]}/report`);
    await page.frameLocator("iframe").getByRole("heading").first().waitFor();
    await picture("report");
    await page.goto(`${origin}/#/lab/${lab}`);
    await page.getByRole("button", { name: "Save as template" }).click();
    await page.getByLabel("Field of the lab").fill("links.1.rate");
    await page.getByLabel("Name of the parameter").fill("narrow");
    await page.getByLabel("What it is").fill("rate of the bottleneck");
    await page.getByRole("button", { name: "Save", exact: true }).last().click();
    await page.getByRole("button", { name: "New lab: window" }).click();
    await page.getByLabel("Name", { exact: true }).fill("slow");
    await page.getByLabel("narrow").fill("2Mbit");
    await picture("template");
  },
  "a network is on its map": async () => {
    await page.goto(`${origin}/#/labs`);
    const network = readFileSync(new URL("../../../examples/abilene/abilene.gml", import.meta.url), "utf8");
    const carried = await page.evaluateHandle((text) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([text], "abilene.gml"));
      return transfer;
    }, network);
    await page.dispatchEvent("main", "drop", { dataTransfer: carried });
    await page.getByRole("button", { name: "Make it" }).click();
    await editor(page).has(11, 14);
    await page.getByText("No mistakes").waitFor();
    await picture("map");
  },
  "labs, editor, desk and account": async () => {
    await page.goto(`${origin}/#/labs`);
    await page
      .getByRole("link", { name: /first network/i })
      .first()
      .waitFor();
    await picture("labs");
    await page
      .getByRole("link", { name: /first network/i })
      .first()
      .click();
    await page.getByText("No mistakes").waitFor();
    await picture("lab");
    for (const name of ["ann", "bea"]) await post(page, "/people", { name });
    await page.goto(`${origin}/#/desk/people`);
    await page.getByRole("cell", { name: "ann", exact: true }).waitFor();
    await picture("desk");
    await page.getByRole("tab", { name: "Quotas" }).click();
    await page
      .getByRole("button", { name: /^Change / })
      .first()
      .waitFor();
    await picture("quotas");
    await page.getByRole("tab", { name: "Machine" }).click();
    await page.getByText("Runs at once").waitFor();
    await picture("machine");
    await page.goto(`${origin}/#/me`);
    await page.getByRole("heading", { name: "Tokens" }).waitFor();
    await picture("account");
  },
  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
