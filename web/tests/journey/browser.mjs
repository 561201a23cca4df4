// What the journeys share: a browser on the page of a server, and what is demanded of every view. Nothing is waited for by
// the clock, but for what is shown.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** How long something may take to be shown, on a machine that does much else. */
const PATIENCE_HOST_MS = 120_000;

/** What a browser says when the API answers that something is missing or wrong; the page shows these itself. */
const ANSWERED =
  /Failed to load resource: (the server responded with a status of (401|403|404|409|422|502)|net::ERR_INTERNET_DISCONNECTED)/;

/** A browser's context, all of whose pages wait as long as that. */
export function patient(context) {
  context.setDefaultTimeout(PATIENCE_HOST_MS);
  return context;
}

export async function open(origin, cookie, options = {}) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  const context = patient(
    await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options }),
  );
  const [name, ...value] = cookie.split("=");
  await context.addCookies([{ name, value: value.join("="), url: origin }]);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !ANSWERED.test(message.text()))
      complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.stack ?? error.message));
  page.on("dialog", (dialog) => void dialog.accept());
  return { browser, context, page, complaints };
}

export function demand(holds, what) {
  if (!holds) throw new Error(what);
}

/** Waits for what no element says by itself: until something holds, looked at again and again. */
export async function until(what, holds) {
  for (const begun = performance.now(); performance.now() - begun < PATIENCE_HOST_MS;) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never: ${what}`);
}

/** Makes the lab `drawn` of what the page offers to begin with: three nodes and two links, without a mistake. */
export async function makeLab(page, origin) {
  await page.goto(origin);
  await page.getByRole("button", { name: "New lab" }).click();
  await page.getByLabel("Name").fill("drawn");
  await page.getByRole("button", { name: "Make it" }).click();
  await editor(page).has(3, 2);
  await page.getByText("No mistakes").waitFor();
}

/** What the API answers to something that is sent as the page would, with the page's own session. */
export const post = (page, path, body) =>
  page.evaluate(
    async ([where, sent]) => {
      const headers = { "Content-Type": "application/json" };
      const answer = await fetch(`/api/v1${where}`, { method: "POST", headers, body: JSON.stringify(sent) });
      if (!answer.ok) throw new Error(`${where}: ${answer.status} ${await answer.text()}`);
      return answer.json();
    },
    [path, body],
  );

/** The editor of a lab, as somebody sees it: its canvas, its text, and how many nodes and links are drawn. */
export function editor(page) {
  const canvas = page.getByRole("application");
  const counted = async () =>
    (await canvas.count()) === 1 ? (await canvas.getAttribute("aria-label")).match(/\d+/g).map(Number) : [];
  return {
    canvas,
    text: page.locator(".right .panel .cm-content"),
    counted,
    has: (nodes, links) =>
      until(`${nodes} nodes${links === undefined ? "" : ` and ${links} links`}`, async () => {
        const [drawn, linked] = await counted();
        return drawn === nodes && (links === undefined || linked === links);
      }),
    /** Goes to a node by its name, which chooses it. */
    find: async (name) => {
      await page.getByLabel("Find a node").fill(name);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: `Node ${name}`, exact: true }).waitFor();
    },
  };
}

/**
 * No violation of what axe-core looks for, in both themes and at both widths; and nothing wider than the window. Themes
 * differ in colours alone, so that the other one is looked at for these.
 */
export async function demandAccessible(page, view) {
  // By the debugger, which the page's own policy does not concern; once a load, as its source is half a megabyte.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  for (const width of [1280, 400]) {
    await page.setViewportSize({ width, height: 800 });
    for (const [theme, rules] of [
      ["light", undefined],
      ["dark", { type: "rule", values: ["color-contrast", "link-in-text-block"] }],
    ]) {
      const told = await page.evaluate(
        async ([chosen, runOnly]) => {
          document.documentElement.dataset.theme = chosen;
          const { violations } = await axe.run({ resultTypes: ["violations"], ...(runOnly && { runOnly }) });
          return violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
        },
        [theme, rules],
      );
      demand(!told.length, `${view}, ${width} pixels, ${theme}:\n${told.join("\n")}`);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    demand(wide <= 0, `${view}: ${wide} pixels wider than a window of ${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}

export async function run(steps) {
  for (const [name, step] of Object.entries(steps)) {
    const begun = performance.now();
    try {
      await step();
    } catch (error) {
      console.error(`FAILED: ${name}\n${error.stack ?? error}`);
      process.exit(1);
    }
    console.log(`${name}: ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  }
}
