// What who looks after others does: `node desk.mjs ORIGIN COOKIE`.
import { demand, demandAccessible, open, run } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie);

await run({
  "the desk shows images, and pulls none from elsewhere": async () => {
    await page.goto(`${origin}/#/desk/images`);
    await page.getByText("from registry.invalid").waitFor();
    await page.getByLabel("Name of an image").fill("127.0.0.1:1/x");
    await page.getByRole("button", { name: "Pull" }).click();
    await page.getByText("images come from these registries alone").waitFor();
    await page.getByLabel("Name of an image").fill("registry.invalid/x");
    await page.getByRole("button", { name: "Pull" }).click();
    await page.getByText("failed", { exact: true }).waitFor();
    await demandAccessible(page, "images");
  },

  "the desk shows the machine, and what it has": async () => {
    await page.getByRole("tab", { name: "Machine" }).click();
    await page.getByText("Speed of a core").waitFor();
    await page
      .getByText(/^\d.* of \d.* free$/)
      .first()
      .waitFor();
    await demandAccessible(page, "machine");
  },

  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
