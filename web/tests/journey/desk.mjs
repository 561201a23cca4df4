// What who looks after others does: `node desk.mjs ORIGIN COOKIE`.
import { demand, demandAccessible, open, post, run } from "./browser.mjs";

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

  "what somebody may use is seen, changed and taken back": async () => {
    for (const name of ["ann", "cleo"]) await post(page, "/people", { name });
    await page.getByRole("tab", { name: "Quotas" }).click();
    const row = page.getByRole("row", { name: /^cleo/ });
    await page.getByRole("row", { name: /^ann/ }).getByText("in the server's file").waitFor();
    await row.getByText("nowhere").waitFor();
    await demandAccessible(page, "quotas");
    await page.getByRole("button", { name: "Change cleo" }).click();
    const dialog = page.getByRole("dialog", { name: "Quota of cleo" });
    await dialog.getByLabel("Memory").fill("much");
    await page.keyboard.press("Enter");
    await dialog.getByRole("alert").getByText("much").waitFor();
    await demandAccessible(page, "a quota");
    await dialog.getByLabel("Memory").fill("3GiB");
    await dialog.getByLabel("Runs at once").fill("2");
    await page.keyboard.press("Enter");
    await row.getByText("here").waitFor();
    await row.getByRole("cell", { name: "3.22 GB" }).waitFor();
    await page.getByRole("button", { name: "Change cleo" }).click();
    demand((await dialog.getByLabel("Memory").inputValue()) === "3GiB", "what was written is there to be changed");
    await dialog.getByRole("button", { name: "Take back" }).click();
    await row.getByText("nowhere").waitFor();
  },

  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
