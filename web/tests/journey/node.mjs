// What is looked into of a node while it runs, on real guests: `node node.mjs ORIGIN COOKIE`. Its logs at any instant, its
// files, and what passes its interface.
import { readFileSync } from "node:fs";
import { demand, demandAccessible, open, post, run, until } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie);

const TEXT = `name: talk
time: {drive: wall}
nodes: {a: {guest: a}, b: {disk: ssd-sata}}
links: [{endpoints: [a, b], delay: 5ms}]
run:
  - {on: a, name: ping, exec: ping -i 0.2 -c 100000 b}
  - {on: b, name: web, exec: python3 -m http.server 8000, background: true}
  - {on: b, name: hostile, exec: "printf '\\\\033[31m<b>red</b>\\\\007\\\\n'"}
measure: {outputs: true}
`;
const FILE = Buffer.alloc(300_000, "dilaton ");

/** A fault may be listed before the dialog that asked for it has heard so and closes: till then keys go to that dialog. */
const noDialog = () => page.getByRole("dialog").waitFor({ state: "detached" });

const openNode = async (name) => {
  await noDialog();
  await page.getByRole("tab", { name: "Overview" }).click();
  // Open, whether it was or not.
  await page.locator("details:has(> summary)", { hasText: "Nodes and links as a list" }).evaluate((list) => {
    list.open = true;
  });
  await page.getByRole("button", { name, exact: true }).press("Enter");
  await page.getByRole("dialog", { name: `Node ${name}` }).waitFor();
};

const openLink = async () => {
  await noDialog();
  await page.getByRole("button", { name: /^a:eth0--b:eth0/ }).press("Enter");
  await page.getByRole("dialog", { name: /^a:eth0/ }).waitFor();
};

await run({
  "a lab goes on": async () => {
    await page.goto(origin);
    const { lab } = await post(page, "/labs", { name: "talk", text: TEXT });
    const { run } = await post(page, `/labs/${lab}/runs`, {});
    await page.goto(`${origin}/#/run/${run}`);
    await page.getByRole("button", { name: "Hold" }).waitFor();
  },
  "its logs are those of the instant that is looked at": async () => {
    await openNode("a");
    await page.getByRole("button", { name: "Logs", exact: true }).click();
    const whose = page.getByLabel("Whose output");
    await until("the logs of the node are shown", async () => (await whose.inputValue()) === "a");
    const lines = page.getByRole("region", { name: "Logs" });
    const fourth = lines.getByText(/icmp_seq=4 /);
    const instant = lines.locator(".line", { hasText: /icmp_seq=4 / }).getByRole("button");
    await lines.getByText(/icmp_seq=6 /).waitFor();
    const at = Number.parseFloat(await instant.textContent());
    // Sent at 0.6 s at the earliest, and answered ten milliseconds later.
    demand(at >= 0.61, `the fourth answer came at ${at} s`);
    await demandAccessible(page, "logs");
    // Where a guest has no core several lines are noted at one instant: one is taken that came later.
    let later = "";
    await until("a line came later than the fourth", async () => {
      const told = await lines.locator(".line:has(button)", { hasText: "icmp_seq" }).last().textContent();
      later = told.match(/icmp_seq=\d+ /)[0];
      return Number.parseFloat(told) > at;
    });
    await instant.click();
    await page.getByText("Looking at").waitFor();
    await lines.getByText(later).waitFor({ state: "detached" });
    await fourth.waitFor();
    await page.getByRole("button", { name: "back to now" }).click();
    await lines.getByText(/icmp_seq=6 /).waitFor();
    await whose.selectOption("b/hostile");
    await lines.getByText("<b>red</b>·", { exact: true }).waitFor();
  },
  "its files are looked at, put there and fetched": async () => {
    await openNode("a");
    await demandAccessible(page, "node");
    await page.getByRole("button", { name: "Files", exact: true }).click();
    await page.getByRole("button", { name: "etc/", exact: true }).click();
    await page.getByRole("button", { name: "hosts", exact: true }).click();
    await page.getByRole("region", { name: "/etc/hosts" }).getByText("localhost").first().waitFor();
    await demandAccessible(page, "a file of a node");
    await page.getByLabel("Directory", { exact: true }).fill("/nowhere");
    await page.getByRole("button", { name: "Go", exact: true }).click();
    await page.getByRole("alert").getByText("No such file or directory").waitFor();
    await page.getByLabel("Directory", { exact: true }).fill("/tmp");
    await page.getByRole("button", { name: "Go", exact: true }).click();
    await page.getByRole("region", { name: "/tmp" }).waitFor();
    await page.getByLabel("Put a file here").setInputFiles({ name: "mine.bin", mimeType: "text/plain", buffer: FILE });
    await page.getByText("/tmp/mine.bin is there").waitFor();
    await demandAccessible(page, "files of a node");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download mine.bin" }).click(),
    ]);
    demand(readFileSync(await download.path()).equals(FILE), "the same bytes came back");
    await page.keyboard.press("Escape");
  },
  "what passes its interface is captured, here and by a line for Wireshark": async () => {
    await openNode("a");
    await page.getByLabel("Filter of what is captured").fill("nonsense of tcpdump");
    await page.getByRole("button", { name: "Capture", exact: true }).click();
    await page.getByRole("alert").first().waitFor();
    await openNode("a");
    await page.getByLabel("Filter of what is captured").fill("icmp");
    await page.getByText(/capture \w+ a:eth0 icmp --wireshark$/).waitFor();
    await page.getByRole("button", { name: "Capture", exact: true }).click();
    await page.getByRole("cell", { name: "ICMP", exact: true }).first().waitFor();
    await page.getByRole("button", { name: "1", exact: true }).click();
    await page.getByText("ICMP 8 bytes").waitFor();
    await page.getByRole("button", { name: "sequence", exact: true }).click();
    // As numbers, and as characters.
    await until("two bytes are marked", async () => (await page.locator(".marked").count()) === 4);
    await demandAccessible(page, "a capture");
    await page.getByRole("button", { name: "Stop capturing" }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download pcapng" }).click(),
    ]);
    demand(readFileSync(await download.path()).readUInt32LE(0) === 0x0a0d0d0a, "a file of pcapng");
  },
  "the verdict is told as it stands": async () => {
    await page.getByRole("tab", { name: "Overview" }).click();
    await page.getByRole("heading", { name: "Verdict so far" }).waitFor();
    await page.getByText(/^(valid|suspect|invalid) · /).waitFor();
    // And as it stood at an instant of the past, of which nothing is known at the very beginning.
    const instant = page.getByRole("slider", { name: "Instant that is looked at" });
    await instant.press("PageDown");
    await page.getByRole("heading", { name: /^Verdict as it stood at \d/ }).waitFor();
    await page.getByText(/^(valid|suspect|invalid) · /).waitFor();
    await instant.press("Home");
    await page.getByText("no verdict was written down").waitFor();
    await page.getByRole("button", { name: "back to now" }).click();
    await page.getByRole("heading", { name: "Verdict so far" }).waitFor();
  },
  "the network is partitioned, now and at an instant, and undone, by the keyboard alone": async () => {
    const faults = page.getByRole("listitem").filter({ hasText: "partition" });
    const dialog = page.getByRole("dialog", { name: "Break something" });
    const begin = async (...filled) => {
      await page.getByRole("button", { name: "Break something" }).press("Enter");
      await dialog.waitFor();
      for (const [label, text] of filled) {
        await dialog.getByLabel(label, { exact: true }).focus();
        await page.keyboard.type(text);
      }
      await page.keyboard.press("Enter");
    };
    await begin(["Group 1", "a"], ["Group 2", "nowhere"]);
    await dialog.getByRole("alert").getByText("nowhere").waitFor();
    await demandAccessible(page, "a partition");
    await page.keyboard.press("Escape");
    await begin(["Group 1", "a"], ["Group 2", "b"], ["For", "1h"]);
    await faults.getByText(/^lasts,/).waitFor();
    await noDialog();
    await faults.getByRole("button", { name: /^Undo/ }).press("Enter");
    await faults.getByText(/^over,/).waitFor();
    await begin(["Group 1", "a"], ["Group 2", "b"], ["At the instant", "2h"]);
    await faults.getByText("yet to begin").waitFor();
  },
  "a disk is broken, and a date set, with what is asked of them": async () => {
    const shown = page.getByRole("listitem");
    await openNode("b");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Break something").click();
    await dialog.getByLabel("Fault").selectOption("disk");
    await dialog.getByLabel("errors").fill("many");
    await dialog.getByRole("button", { name: "Begin" }).click();
    await dialog.getByRole("alert").getByText("many").waitFor();
    await dialog.getByLabel("errors").fill("5%");
    await dialog.getByLabel("read_only").check();
    await demandAccessible(page, "a fault of a disk");
    await dialog.getByRole("button", { name: "Begin" }).click();
    await shown
      .filter({ hasText: "disk" })
      .getByText(/^lasts,/)
      .waitFor();
    await openNode("a");
    await dialog.getByText("Break something").click();
    await dialog.getByLabel("Fault").selectOption("clock");
    await dialog.getByLabel("jump").fill("+1h");
    await dialog.getByRole("button", { name: "Begin" }).click();
    await shown
      .filter({ hasText: "clock" })
      .getByText(/^lasts,/)
      .waitFor();
  },
  "a program is killed and started again, a load sent, a link has its ups and downs": async () => {
    const shown = page.getByRole("listitem");
    const dialog = page.getByRole("dialog");
    const begin = async (kind, ...filled) => {
      await dialog.getByText("Break something").click();
      await dialog.getByLabel("Fault").selectOption(kind);
      for (const [label, text] of filled) await dialog.getByLabel(label, { exact: true }).fill(text);
    };
    await openNode("b");
    await begin("kill", ["Program", "b/hostil"], ["restart", "500ms"]);
    await dialog.getByRole("button", { name: "Begin" }).click();
    await dialog.getByRole("alert").getByText("did you mean hostile?").waitFor();
    await dialog.getByLabel("Program", { exact: true }).fill("b/web");
    await demandAccessible(page, "a program is to be killed");
    await dialog.getByRole("button", { name: "Begin" }).click();
    const killed = shown.filter({ hasText: "kill b/web" });
    await killed.getByText(/^over,/).waitFor();
    await openNode("a");
    await begin("load", ["to", "b"], ["http", "20/s"], ["port", "8000"], ["For", "1s"], ["At the instant", "3h"]);
    await dialog.getByText("Requests, a second, each over a connection of its own.").waitFor();
    await dialog.getByRole("button", { name: "Begin" }).click();
    await shown.filter({ hasText: "load a to b http 20/s" }).getByText("yet to begin").waitFor();
    await openLink();
    await dialog.getByText("have a link go down and up").click();
    for (const [label, text] of [
      ["down", "100ms"],
      ["up", "1h"],
    ])
      await dialog.getByLabel(label, { exact: true }).fill(text);
    await demandAccessible(page, "a link is to go down and up");
    await dialog.getByRole("button", { name: "Begin" }).click();
    const flap = shown.filter({ hasText: "flap a" });
    await flap.getByText(/^lasts,/).waitFor();
    await flap.getByRole("button", { name: /^Undo/ }).click();
    await flap.getByText(/^over,/).waitFor();
  },
  "faults are drawn, and taken back together": async () => {
    const dialog = page.getByRole("dialog", { name: "Break something" });
    await page.getByRole("button", { name: "Break something" }).click();
    await dialog.getByLabel("Fault").selectOption("random");
    await dialog.getByLabel("every").fill("1h");
    await dialog.getByLabel("for", { exact: true }).fill("10s");
    await dialog.getByLabel("Draw them for").fill("30min");
    await demandAccessible(page, "faults are to be drawn");
    await dialog.getByRole("button", { name: "Begin" }).click();
    await dialog.getByRole("alert").getByText("draws no fault").waitFor();
    await dialog.getByLabel("Draw them for").fill("10h");
    await dialog.getByRole("button", { name: "Begin" }).click();
    const drawn = page.getByRole("listitem").filter({ hasText: "9 more, yet to begin" });
    await drawn.getByRole("button", { name: /^Undo hand/ }).click();
    await drawn.waitFor({ state: "detached" });
  },
  "what it serves is shown in a page of its own": async () => {
    await openNode("b");
    await page.getByLabel("Port").fill("8000");
    await demandAccessible(page, "a node's page is to be opened");
    const [shown] = await Promise.all([
      page.waitForEvent("popup"),
      page.getByRole("button", { name: "Open its page" }).click(),
    ]);
    await shown.getByRole("heading", { name: "Directory listing for /" }).waitFor();
    demand(new URL(shown.url()).host !== new URL(origin).host, "under a host of its own");
    await shown.close();
    await page.keyboard.press("Escape");
  },
  "it is ended, and its logs stay": async () => {
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("aborted", { exact: true }).first().waitFor();
    await page.getByRole("tab", { name: "Logs" }).click();
    await page.getByLabel("Filter lines").fill("icmp_seq=4 ttl");
    await page.getByText("1 line", { exact: true }).waitFor();
  },
  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
