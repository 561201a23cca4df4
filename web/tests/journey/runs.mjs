// A run, from its beginning to what is read in it and beside others: `node runs.mjs ORIGIN COOKIE`, on a server whose runs are
// on a machine without a kernel.
import { demand, demandAccessible, makeLab, open, post, run, until } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie);

await run({
  "a lab is made of a starting point": () => makeLab(page, origin),

  "it runs, and what came of it is shown": async () => {
    await page.getByRole("button", { name: "▶ Run" }).click();
    await page.waitForURL(/#\/run\//);
    await page.getByText("finished").first().waitFor();
    await page.locator("strong", { hasText: "client/ping" }).waitFor();
    await demandAccessible(page, "run");
    await page.getByRole("tab", { name: "Overview" }).focus();
    await page.keyboard.press("ArrowRight");
    // Planned, and beside it what has happened, at which one can look.
    const row = page.getByRole("row", { name: "client/ping" });
    await row.getByText("0.000 s – 0.500 s").waitFor();
    await row.getByRole("button").last().click();
    await page.getByText("Looking at").waitFor();
    await page.getByRole("button", { name: "back to now" }).click();
    await demandAccessible(page, "schedule");
    await page.getByRole("tab", { name: "Schedule" }).press("ArrowRight");
    await page.getByRole("cell", { name: "client/ping" }).first().waitFor();
    await demandAccessible(page, "events");
    await page.getByRole("slider", { name: "Instant that is looked at" }).press("Home");
    await page.getByText("Looking at 0.000 s").waitFor();
    await page.getByRole("button", { name: "back to now" }).click();
    const panel = page.getByRole("tabpanel");
    for (const [name, shown] of [
      ["Plots", panel.getByText("This lab measures no interfaces")],
      ["Files", panel.getByRole("link", { name: "Download run.json" })],
      ["Report", page.frameLocator("iframe").getByRole("heading").first()],
    ]) {
      await page.getByRole("tab", { name }).click();
      await shown.waitFor();
      await demandAccessible(page, name);
    }
    // The last tab was shown while there was room for all.
    await page.setViewportSize({ width: 400, height: 800 });
    await until("the shown tab is in sight", () =>
      page.getByRole("tab", { name: "Report" }).evaluate((tab) => {
        const [own, all] = [tab, tab.parentElement].map((one) => one.getBoundingClientRect());
        return own.left >= all.left - 1 && own.right <= all.right + 1;
      }),
    );
    await page.setViewportSize({ width: 1280, height: 800 });
  },

  "a run that goes on is held, released and ended": async () => {
    const text = "name: tiny\nnodes: {a: {}, b: {}}\nlinks: [a -- b]\nrun:\n  - {on: a, name: endless, exec: 'true'}\n";
    const { lab } = await post(page, "/labs", { name: "tiny", text });
    const { run } = await post(page, `/labs/${lab}/runs`, {});
    await page.goto(`${origin}/#/run/${run}`);
    await page.getByRole("button", { name: "Hold" }).click();
    await page.getByText("held", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Release" }).click();
    await page.getByText("running", { exact: true }).first().waitFor();
    const tdf = page.locator("dd").nth(2);
    const before = await tdf.textContent();
    await page.getByRole("slider", { name: "TDF" }).press("ArrowRight");
    await until("another TDF", async () => (await tdf.textContent()) !== before);
    await demandAccessible(page, "a run that goes on");
    // What a run that does not get on says of itself is put into what this one does.
    await page.evaluate(() => {
      const asked = window.fetch;
      window.fetch = async (...about) => {
        const answer = await asked(...about);
        if (!answer.ok || !answer.url.endsWith("/status")) return answer;
        return Response.json({ ...(await answer.json()), notice: window.getsOn ? null : "has not moved: guest a" });
      };
    });
    const notice = page.getByRole("status").filter({ hasText: "Virtual time has not moved: guest a." });
    await notice.waitFor();
    await demandAccessible(page, "a run that does not get on");
    await page.evaluate(() => (window.getsOn = true));
    await notice.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("aborted").or(page.getByText("finished")).first().waitFor();
    await page.goto(`${origin}/#/runs`);
    await page.getByRole("table").waitFor();
    await demandAccessible(page, "runs");
  },

  "a lab runs for somebody to work in, whatever its programs have left to do": async () => {
    await page.goto(`${origin}/#/labs`);
    await page.getByRole("link", { name: "drawn" }).click();
    const [asked] = await Promise.all([
      page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/runs")),
      page.getByRole("button", { name: "Run and stay" }).click(),
    ]);
    demand(asked.postDataJSON().stays === true, "the run is to stay");
    await page.waitForURL(/#\/run\//);
    // The machine without a kernel has nobody who would work in it, and so no run that stays.
    await page.getByText("finished").first().waitFor();
    await page.goto(`${origin}/#/runs`);
  },

  "nodes and links of a run are looked at by the keyboard alone": async () => {
    // As its text calls the lab.
    await page.getByRole("link", { name: "small" }).last().click();
    await page.getByText("Nodes and links as a list").press("Enter");
    await page.getByRole("button", { name: "client", exact: true }).press("Enter");
    await page.getByRole("dialog", { name: "Node client" }).waitFor();
    await demandAccessible(page, "node");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "client:eth0--router:eth0" }).press("Enter");
    await page.getByText("100 Mbit/s, 5 ms").first().waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("tab", { name: "Packets" }).click();
    await page.getByText("captures no packets").waitFor();
  },

  "a lab runs with changes, several times, and what came of it is compared": async () => {
    await page.goto(`${origin}/#/labs`);
    await page.getByRole("link", { name: "drawn" }).first().click();
    await page.getByRole("button", { name: "Run with changes" }).click();
    await page.getByLabel("Field", { exact: true }).fill("links.0.delay");
    await page.getByLabel("Values").fill("5ms, 10ms");
    await page.getByLabel("Repeats").fill("2");
    demand(await page.getByLabel("Machines").isEnabled(), "each run of a sweep may be spread");
    await demandAccessible(page, "run with changes");
    const [asked] = await Promise.all([
      page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/sweeps")),
      page.getByRole("button", { name: "Make 4 runs" }).click(),
    ]);
    demand(asked.postDataJSON().machines === 1, "each run is on one machine");
    // Each is a process of its own.
    await page.getByText("4 of 4 runs over").waitFor({ timeout: 200_000 });
    await page.getByText("seed=2, links.0.delay=10ms").first().waitFor();
    await page.getByText("4 finished", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Compare them" }).click();
    await page
      .getByText(/indistinguishable|cannot tell|different in|nothing to compare/)
      .first()
      .waitFor();
    await demandAccessible(page, "comparison");
    await page.goto(`${origin}/#/runs`);
    await page.getByText("Sweeps").click();
    const sweep = page.getByRole("link", { name: "Sweep of" });
    await sweep.waitFor();
    await demandAccessible(page, "sweeps");
    await sweep.click();
    await page.getByText("4 of 4 runs over").waitFor();
    await page.goto(`${origin}/#/runs`);
    for (const n of [0, 1]) await page.getByRole("checkbox").nth(n).check();
    await page.getByRole("link", { name: "Compare 2" }).click();
    await page.getByText("2 of 2 runs over").waitFor();
  },

  "a run is made again up to an instant, and held there": async () => {
    await page.getByRole("link", { name: "small" }).first().click();
    await page.getByRole("slider", { name: "Instant that is looked at" }).press("Home");
    await page.getByRole("button", { name: "Run again up to here" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run", exact: false }).last().click();
    await page.getByText("held", { exact: true }).first().waitFor();
    await page.getByText("Not judged yet: in the first second").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("aborted").or(page.getByText("finished")).first().waitFor();
  },

  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
