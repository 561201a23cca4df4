// What a large lab costs a browser: `node large.mjs ORIGIN COOKIE`. Gates are on counts; host times are printed, as those
// of this machine at this moment.
import { demand, open, post, run } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie);
const [ROWS, COLUMNS, MOVES] = [25, 40, 120];
const DOM_NODES_MAX = 3000;
const canvas = page.getByRole("application");

/** A grid, written node by node. */
function text() {
  const name = (row, column) => `r${row}c${column}`;
  const nodes = [];
  const links = [];
  for (let row = 0; row < ROWS; row++)
    for (let column = 0; column < COLUMNS; column++) {
      nodes.push(`  ${name(row, column)}: {kind: router}`);
      if (column) links.push(`  - {endpoints: [${name(row, column - 1)}, ${name(row, column)}], delay: 1ms}`);
      if (row) links.push(`  - {endpoints: [${name(row - 1, column)}, ${name(row, column)}], rate: 1Gbit}`);
    }
  return `name: large\nnodes:\n${nodes.join("\n")}\nlinks:\n${links.join("\n")}\n`;
}

/** What happens in the browser meanwhile, as its own trace has it. */
async function traced(what) {
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const isOver = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.start", { categories: "devtools.timeline", transferMode: "ReportEvents" });
  await what();
  await session.send("Tracing.end");
  await isOver;
  await session.detach();
  return events;
}

await run({
  "the first page can be used": async () => {
    const session = await page.context().newCDPSession(page);
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    await page.goto(origin);
    await page.getByRole("button", { name: "New lab" }).waitFor();
    const [at, scripts] = await page.evaluate(() => [
      performance.now(),
      performance.getEntriesByType("resource").filter((one) => one.name.endsWith(".js")).length,
    ]);
    console.log(`first page: could be used after ${at.toFixed(0)} ms, ${scripts} scripts`);
  },

  "a lab of a thousand nodes is drawn, and the page stays small": async () => {
    const { lab } = await post(page, "/labs", { name: "large", text: text() });
    await page.goto(`${origin}/#/lab/${lab}`);
    await canvas.waitFor();
    await page.waitForFunction(() => document.querySelector("[role=application]")?._cyreg?.cy.nodes().length === 1000);
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    console.log(`1,000 nodes on the canvas: ${nodes} of the DOM`);
    demand(nodes <= DOM_NODES_MAX, `${nodes} nodes of the DOM`);
  },

  "it is panned, and hardly more frames are drawn than there are moves": async () => {
    await page.evaluate(() => {
      const { cy } = document.querySelector("[role=application]")._cyreg;
      window.drawn = 0;
      window.moved = 0;
      cy.on("render", () => window.drawn++);
      cy.on("pan", () => window.moved++);
    });
    const box = await canvas.boundingBox();
    const events = await traced(async () => {
      await page.mouse.move(box.x + 8, box.y + 8);
      await page.mouse.down();
      // As fast as a mouse tells of itself.
      await page.evaluate(() => (window.begun = performance.now()));
      for (let move = 0; move < MOVES; move++) {
        const angle = (2 * Math.PI * move) / MOVES;
        await page.mouse.move(box.x + 8 + 150 * (1 - Math.cos(angle)), box.y + 8 + 100 * Math.abs(Math.sin(angle)));
      }
      await page.evaluate(() => (window.ended = performance.now()));
      await page.mouse.up();
    });
    const [drawn, moved, tookMs] = await page.evaluate(() => [window.drawn, window.moved, window.ended - window.begun]);
    const frames = events.filter((event) => event.name === "FireAnimationFrame");
    const longestMs = Math.max(...frames.map((event) => (event.dur ?? 0) / 1000));
    const meanMs = frames.reduce((sum, event) => sum + (event.dur ?? 0) / 1000, 0) / frames.length;
    console.log(
      `panned: ${MOVES} moves, ${moved} changes of the view, ${drawn} frames drawn in ${tookMs.toFixed(0)} ms ` +
        `(${((1000 * drawn) / tookMs).toFixed(0)} a second); a frame takes ${meanMs.toFixed(1)} ms, at most ${longestMs.toFixed(1)}`,
    );
    // What is seen is drawn once more, better, when nothing moves any more.
    demand(drawn > 0 && drawn <= 1.25 * MOVES, `${drawn} frames for ${MOVES} moves`);
  },

  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
