// The tour of the first visit, on real guests: `node tour.mjs ORIGIN COOKIE`. It ends with a graph of a link that was full,
// and with what somebody has done meanwhile: a terminal, a link that was changed, and a fault.
import { readFileSync } from "node:fs";
import { demand, demandAccessible, open, post, run, until } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie);
const clock = async () => Number.parseFloat(await page.locator("dd").first().textContent());

await run({
  "one press makes a lab and runs it": async () => {
    await page.goto(origin);
    await page.getByRole("button", { name: "Run the first network" }).click();
    await page.getByText("1 of 3").waitFor();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByRole("button", { name: "Hold" }).click();
    await page.getByRole("button", { name: "Release" }).waitFor();
  },
  "while it is held, its time stands still": async () => {
    // What the run says of itself is asked for again and again: from the first answer after the hold on, it is the same.
    const told = async () => (await (await page.waitForResponse(/\/status$/)).json()).clock;
    const held = async () => {
      for (;;) {
        const said = await told();
        if (said.held) return said.virtual_s;
      }
    };
    const then = await held();
    for (let look = 0; look < 2; look++) demand((await told()).virtual_s === then, "virtual time went on");
    await until("the page shows it", async () => Math.abs((await clock()) - then) < 0.001);
  },
  "a link is changed at once": async () => {
    await page.getByText("Nodes and links as a list").click();
    await page.getByRole("button", { name: "left:eth1--right:eth0" }).click();
    await demandAccessible(page, "link");
    await page.getByLabel("rate", { exact: true }).fill("10Mbit");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("Takes effect at").waitFor();
    await page.keyboard.press("Escape");
  },
  "a node suffers a fault until it is undone": async () => {
    await page.getByRole("button", { name: "bob", exact: true }).click();
    const broken = page.getByRole("dialog").getByText("Break something");
    await broken.click();
    await demandAccessible(page, "node");
    await page.getByRole("button", { name: "Begin" }).click();
    await page.getByRole("button", { name: "Undo pause bob" }).click();
    await page.getByText(/^over,/).waitFor();
    // One that is yet to begin, and never does.
    await page.getByRole("button", { name: "bob", exact: true }).click();
    await broken.click();
    await page.getByLabel("At the instant", { exact: true }).fill("1h");
    await page.getByRole("button", { name: "Begin" }).click();
    await page.getByText(/^yet to begin/).waitFor();
    await page.getByRole("button", { name: "Undo pause bob" }).click();
    await page.getByText(/^did not come/).waitFor();
  },
  "virtual time runs no faster than is asked": async () => {
    await page.getByLabel("Virtual seconds per host second at most").fill("0.5");
    await page.getByRole("button", { name: "At most" }).click();
    await page.getByPlaceholder("0.5 ×").waitFor();
  },
  "what was done by hand is in the schedule, beside what was planned": async () => {
    await page.getByRole("tab", { name: "Schedule" }).click();
    await page.getByRole("row", { name: "hand1" }).getByText("by hand").waitFor();
    await page.getByRole("row", { name: "alice/bulk" }).getByText("or later").waitFor();
    await page.getByRole("row", { name: "left:eth1--right:eth0" }).getByText("rate 10Mbit").waitFor();
    await demandAccessible(page, "schedule");
  },
  "a terminal in a node is typed into": async () => {
    await page.getByRole("tab", { name: "Terminals" }).click();
    await page.getByLabel("Node").selectOption("alice");
    await page.getByRole("button", { name: "Open a terminal" }).click();
    await page.getByText("alice · open").waitFor();
    await demandAccessible(page, "terminals");
    await page.getByRole("button", { name: "Release" }).click();
    await page.getByRole("textbox", { name: "alice" }).focus();
    await page.keyboard.type("echo this is $(hostname)\n");
    await page.locator(".xterm-accessibility").getByText("this is alice").last().waitFor();
  },
  "one that was opened beside another is shown with letters that are as wide as they are": async () => {
    await page.getByLabel("Node").selectOption("bob");
    await page.getByRole("button", { name: "Open a terminal" }).click();
    await page.getByText("bob · open").waitFor();
    await page.getByRole("tab", { name: "Overview" }).click();
    await page.getByRole("tab", { name: "Terminals" }).click();
    await page.getByLabel("Side by side").check();
    await page.getByText("bob · open").waitFor();
    const apart = await page
      .locator(".xterm-rows")
      .evaluateAll((rows) => rows.map((one) => Number.parseFloat(one.style.letterSpacing)));
    demand(
      apart.length === 2 && apart.every((px) => Math.abs(px) < 1),
      `letters stand ${apart.join(" and ")} px apart`,
    );
  },
  "what it carried is plotted, and the change is seen": async () => {
    // However slow the host is, it has come to carry something before it is ended.
    await page.getByRole("tab", { name: "Packets" }).click();
    await page.getByLabel("Filter").fill("tcp and dst port 5201 and greater 100");
    await until("packets of iperf3", async () => {
      await page.getByRole("button", { name: "Again" }).click();
      return (await page.locator("tbody button").count()) > 0;
    });
    await page.getByRole("tab", { name: "Plots" }).click();
    const plots = page.locator(".u-over");
    await until("three plots", async () => (await plots.count()) === 3);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("aborted", { exact: true }).first().waitFor();
    await until("three plots, as before", async () => (await plots.count()) === 3);
    await page.getByRole("tab", { name: "Events" }).click();
    await page.getByRole("tabpanel").getByText("rate 10Mbit").first().waitFor();
    await page.getByRole("tab", { name: "Packets" }).click();
    await page.getByLabel("Filter").fill("icmp");
    await page.getByText(/^[1-9]\d* of \d+ packets$/).waitFor();
    await demandAccessible(page, "packets");
    await page.getByLabel("Filter").fill("tcp and dst port 5201 and greater 100");
    // Those of the filter before are shown until these have been found.
    const tcp = page.getByRole("cell", { name: "TCP", exact: true });
    await page.locator("tbody tr", { has: tcp }).first().getByRole("button").click();
    await page.getByRole("button", { name: "Follow this stream" }).click();
    await page.getByRole("dialog").locator("pre").first().waitFor();
    await demandAccessible(page, "stream");
    await page.keyboard.press("Escape");
  },
  "two runs are in one plot, which is taken away as SVG": async () => {
    const first = page.url().match(/run\/([^/]+)/)[1];
    const lab = (await page.getByRole("link", { name: "Edit lab" }).getAttribute("href")).split("/").at(-1);
    const overrides = { settings: ["stop_after=3s", "links.1.rate=5Mbit"] };
    const { run: second } = await post(page, `/labs/${lab}/runs`, { overrides });
    await page.goto(`${origin}/#/compare/${first},${second}`);
    await page.getByText("2 of 2 runs over").waitFor();
    await page.getByText("Runs: 2 of 2").waitFor();
    // The legend has a line for time, and one for each run.
    await page.locator(".u-series").nth(2).getByText("rate=5Mbit").waitFor();
    await page.getByLabel("Interface").selectOption("left:eth1");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "SVG" }).click(),
    ]);
    const svg = readFileSync(await download.path(), "utf8");
    demand((svg.match(/<path /g) ?? []).length === 2 && svg.includes("Mbit/s"), "a drawing of two lines");
    await demandAccessible(page, "runs over time");
  },
  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
