// The first look, and labs of files: `node labs.mjs ORIGIN COOKIE`, on a server whose runs are on a machine without a kernel.
import { demand, demandAccessible, editor, open, post, run, until } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie);
const FIRST_PAGE_BYTES_MAX = 300_000;
const drawn = editor(page);

await run({
  "the first page is small, and says what can be done": async () => {
    let bytes = 0;
    page.on("requestfinished", async (request) => {
      const sizes = await request.sizes();
      bytes += sizes.responseBodySize + sizes.responseHeadersSize;
    });
    await page.goto(origin);
    await page.getByRole("heading", { name: "Labs", exact: true }).waitFor();
    await page.getByRole("button", { name: "Run the first network" }).waitFor();
    await until("the page is there", () => bytes > 0);
    console.log(`first page: ${bytes} bytes as sent`);
    demand(bytes <= FIRST_PAGE_BYTES_MAX, `the first page has ${bytes} bytes`);
    await demandAccessible(page, "labs");
  },

  "a file that is dropped becomes a lab, and what that lacks is told before": async () => {
    const drop = async (name, text) => {
      const carried = await page.evaluateHandle(
        ([called, written]) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([written], called));
          return transfer;
        },
        [name, text],
      );
      await page.dispatchEvent("main", "drop", { dataTransfer: carried });
    };
    const dialog = page.getByRole("dialog");
    const make = dialog.getByRole("button", { name: "Make it" });
    await drop("hostile.graphml", "graph [ <script>alert(1)</script> ]");
    await dialog.getByRole("alert").getByText("hostile.graphml:1:1: not GraphML").waitFor();
    demand(await make.isDisabled(), "no lab of what cannot be read");
    // Behind a dialog nothing is dropped.
    await drop("other.gml", "graph [ ]");
    demand((await page.getByRole("dialog").count()) === 1, "one dialog");
    await demandAccessible(page, "a file that cannot be read");
    await page.keyboard.press("Escape");
    // Whatever the page shows.
    await page.goto(`${origin}/#/runs`);
    await page.getByRole("heading", { name: "Runs" }).waitFor();
    await drop("large.xml", "x".repeat(1_000_001));
    await page.getByText("large.xml: the file is larger").waitFor();
    const places = [
      ["Oslo", 10.7, 59.9],
      ["Wien", 16.4, 48.2],
    ];
    const nodes = places.map(([label, x, y], id) => `node [ id ${id} label "${label}" Longitude ${x} Latitude ${y} ]`);
    await drop("europe.gml", `graph [ ${nodes.join(" ")} edge [ source 0 target 1 ] edge [ source 1 target 0 ] ]`);
    await dialog.getByRole("alert").getByText("europe.gml: not GML").waitFor();
    await page.keyboard.press("Escape");
    await drop("europe.gml", `graph [ ${nodes.join(" ")} edge [ source 0 target 1 ] ]`);
    await dialog.getByText("Taken for: a graph in GML.").waitFor();
    await page.keyboard.press("Escape");
    await drop("lab.conf", 'r1[0]="A"\nr2[0]="A"\nr2[image]="kathara/base"\n');
    await dialog.getByText("lab.conf:3: image: a lab cannot honour this").waitFor();
    await demandAccessible(page, "a file that is read");
    await page.keyboard.press("Escape");
    await drop("europe.gml", `graph [ ${nodes.join(" ")} edge [ source 0 target 1 ] ]`);
    demand((await dialog.getByLabel("Name").inputValue()) === "europe", "the lab is called as its file");
    await make.click();
    await drawn.text.getByText("- {endpoints: [oslo, wien], delay:").waitFor();
    await drawn.has(2);
    const { positions } = await page.evaluate(
      async (lab) => (await fetch(`/api/v1/labs/${lab}/layout`)).json(),
      page.url().match(/lab\/([^/?]+)/)[1],
    );
    demand(positions.oslo[1] < positions.wien[1] && positions.oslo[0] < positions.wien[0], "as on the map");
    // The map is below it, and has land, as long as the nodes are where it has them.
    const landSeen = () =>
      page.locator("canvas.ground").evaluateAll(([ground]) => {
        if (!ground) return false;
        // Read from a copy: a canvas that is read often is better not on the graphics card, and the browser says so.
        const copy = new OffscreenCanvas(ground.width, ground.height).getContext("2d", { willReadFrequently: true });
        copy.drawImage(ground, 0, 0);
        const { data } = copy.getImageData(0, 0, ground.width, ground.height);
        return data.filter((value, n) => n % 4 === 3 && value > 200).length > 1000;
      });
    await until("land is drawn", landSeen);
    await page.getByLabel("Arrange").selectOption("circle");
    await page.locator("canvas.ground").waitFor({ state: "detached" });
    await page.getByLabel("Arrange").selectOption("map");
    await until("land is drawn again", landSeen);
    await demandAccessible(page, "a lab on a map");
    // What is not saved is not lost by a step elsewhere, unless somebody says so: here they do.
    await page.getByRole("button", { name: "Add Host" }).click();
    const asked = page.waitForEvent("dialog");
    await page.getByText("No mistakes").waitFor();
    await page.goto(`${origin}/#/labs`);
    demand((await asked).message().includes("not saved"), "they were asked");
    await page.getByRole("button", { name: "Delete europe" }).click();
    await page.getByText("No labs yet").waitFor();
  },

  "hostile names and texts stay text": async () => {
    const hostile = '<img src=x onerror="document.title=1">\u202e{{7*7}}';
    const text = `name: "${"x".repeat(100_000)}<script>document.title=1</script>\u0007"\nnodes: {"<b>": {}, __proto__: {}, constructor: {}}\nlinks: ["<b> -- __proto__"]\n`;
    await post(page, "/labs", { name: hostile, text });
    await page.goto(`${origin}/#/labs`);
    await page.getByText(hostile).click();
    await drawn.has(3);
    demand((await page.locator("img[onerror], img[src=x]").count()) === 0, "no name became a picture");
    demand((await page.title()) === "Labs · Dilaton", "no script has run");
    demand((await page.evaluate(() => ({}).polluted)) === undefined, "no prototype was written");
  },

  "an example whose network is in a file becomes a lab that has it, where it is on earth": async () => {
    await page.goto(`${origin}/#/labs`);
    await page.getByRole("button", { name: "New lab" }).click();
    const name = page.getByLabel("Name", { exact: true });
    // What is chosen names the lab, as long as nobody has.
    for (const [example, called] of [
      ["sawtooth", "sawtooth"],
      ["abilene", "abilene"],
    ]) {
      await page.getByRole("radio", { name: new RegExp(` ${example}$`) }).check();
      demand((await name.inputValue()) === called, `the lab is called ${called}`);
    }
    await name.fill("backbone");
    await page.getByRole("radio", { name: / dumbbell$/ }).check();
    await page.getByRole("radio", { name: / abilene$/ }).check();
    demand((await name.inputValue()) === "backbone", "a name that somebody has given stays");
    await page.getByRole("button", { name: "Make it" }).click();
    await drawn.has(13, 16);
    await drawn.text.getByText("{endpoints: [seattle, sunnyvale], rate: 1Gbit").waitFor();
    // Offered where a network is on a map.
    await page.getByRole("option", { name: "On the map" }).waitFor({ state: "attached" });
    // Where there is little room, names are left out before they lie on each other.
    await page.setViewportSize({ width: 400, height: 800 });
    const names = () =>
      drawn.canvas.evaluate(({ _cyreg: { cy } }) => {
        const boxes = cy
          .nodes("[label]")
          .filter((node) => Number(node.style("text-opacity")) > 0)
          .map((node) => node.renderedBoundingBox({ includeNodes: false, includeOverlays: false }));
        const over = (a, b) =>
          Math.min(a.x2, b.x2) - Math.max(a.x1, b.x1) > 3 && Math.min(a.y2, b.y2) - Math.max(a.y1, b.y1) > 3;
        return [boxes.length, boxes.flatMap((a, n) => boxes.slice(n + 1).filter((b) => over(a, b))).length];
      });
    await until("some names are left out, and none is on another one", async () => {
      const [shown, overlapping] = await names();
      return shown > 3 && shown < 13 && overlapping === 0;
    });
    await page.setViewportSize({ width: 1280, height: 800 });
  },

  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
