// What a large lab costs a browser: `node large.mjs ORIGIN COOKIE`. Gates are on counts; host times are printed, as those
// of this machine at this moment.
import { demand, open, post, run } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie);
const [ROWS, COLUMNS, MOVES] = [25, 40, 120];
const DOM_NODES_MAX = 3000;
const PACKETS = 100_000;
const BYTES = 100;
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

/** A capture of so many packets of a hundred bytes, as a run writes them. */
function capture(packets) {
  const block = (kind, ...words) => [kind, 12 + 4 * words.length, ...words, 12 + 4 * words.length];
  const head = [...block(0x0a0d0d0a, 0x1a2b3c4d, 1, ~0, ~0), ...block(1, 1, 0)];
  const packet = block(6, 0, 0, 0, BYTES, BYTES, ...Array(BYTES / 4).fill(0));
  const file = new Uint32Array(head.length + packets * packet.length);
  file.set(head);
  for (let n = 0; n < packets; n++) {
    file.set(packet, head.length + n * packet.length);
    // Microseconds, and an Ethernet frame of IPv4, which carries UDP.
    file[head.length + n * packet.length + 4] = 10 * n;
    file.set(
      [0x02000000, 0x02000000, 0, 0x00450008, 0, 0x11400000, 0x000a0000, 0x000a0100, 0x35000200],
      head.length + n * packet.length + 7,
    );
  }
  return Buffer.from(file.buffer);
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

  "while a worker reads a hundred thousand packets, the page answers": async () => {
    const text =
      "name: much\nnodes: {a: {}, b: {}}\nlinks: [a -- b]\nrun: [{on: a, exec: 'true'}]\nmeasure: {capture: [a:eth0]}\n";
    const { lab } = await post(page, "/labs", { name: "much", text });
    const { run: done } = await post(page, `/labs/${lab}/runs`, {});
    await page.goto(`${origin}/#/run/${done}`);
    await page.getByText("finished").first().waitFor();
    await page.route(/\.pcapng$/, (route) => route.fulfill({ body: capture(PACKETS) }));
    // How long the page was kept from what is due, again and again until the packets are there.
    await page.evaluate(() => {
      window.gaps = [];
      let last = performance.now();
      const beat = () => {
        const now = performance.now();
        window.gaps.push(now - last);
        last = now;
        window.beating = setTimeout(beat);
      };
      window.beating = setTimeout(beat);
    });
    await page.getByRole("tab", { name: "Packets" }).click();
    await page.getByText(`${PACKETS} of ${PACKETS} packets`).waitFor();
    const gaps = await page.evaluate(() => (clearTimeout(window.beating), window.gaps));
    const [longestMs, allMs] = [Math.max(...gaps), gaps.reduce((sum, gap) => sum + gap, 0)];
    const late = gaps.filter((gap) => gap > 50).length;
    console.log(
      `${PACKETS} packets: there after ${allMs.toFixed(0)} ms, the page was kept for ${longestMs.toFixed(0)} ms at most, ` +
        `${late} times for more than 50 of ${gaps.length} looks`,
    );
    demand(longestMs < allMs / 2, `the page was kept for ${longestMs} of ${allMs} ms`);
  },

  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
