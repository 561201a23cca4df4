// What the journeys share: a browser on the page of a server, and what is demanded of every view. Nothing is waited for by
// the clock, but for what is shown.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** What a browser says when the API answers that something is missing or wrong; the page shows these itself. */
const ANSWERED =
  /Failed to load resource: (the server responded with a status of (401|403|404|409|422|502)|net::ERR_INTERNET_DISCONNECTED)/;

export async function open(origin, cookie, options = {}) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: "reduce",
    ...options,
  });
  const [name, ...value] = cookie.split("=");
  await context.addCookies([{ name, value: value.join("="), url: origin }]);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
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

/** No violation of what axe-core looks for, in both themes and at both widths; and nothing wider than the window. */
export async function demandAccessible(page, view) {
  for (const width of [1280, 400]) {
    await page.setViewportSize({ width, height: 800 });
    for (const theme of ["light", "dark"]) {
      await page.evaluate((chosen) => (document.documentElement.dataset.theme = chosen), theme);
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
      const told = violations.map(
        (one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`,
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
