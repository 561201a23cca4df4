// What several people do with a lab, and what becomes of it when the server is away: `node together.mjs ORIGIN COOKIE`, on a
// server whose runs are on a machine without a kernel.
import { demand, demandAccessible, editor, makeLab, open, patient, run, until } from "./browser.mjs";

const [origin, cookie] = process.argv.slice(2);
const { browser, page, complaints } = await open(origin, cookie);
const drawn = editor(page);

await run({
  "a lab that is made while the list of all is on its way is in it": async () => {
    let come;
    const made = new Promise((resolve) => (come = resolve));
    await page.route(/\/runs\?count=/, async (route) => {
      const response = await route.fetch();
      await made;
      await route.fulfill({ response });
    });
    await makeLab(page, origin);
    come();
    await page.unrouteAll({ behavior: "wait" });
    await page.goto(`${origin}/#/labs`);
    await page.getByRole("link", { name: "drawn" }).click();
    await editor(page).has(3, 2);
  },

  "it is kept as a template, from which another lab begins with what was chosen": async () => {
    await page.getByRole("button", { name: "Save as template" }).click();
    await page.getByLabel("Field of the lab").first().fill("links.1.rate");
    await page.getByLabel("Name of the parameter").fill("narrow");
    await page.getByLabel("What it is").fill("rate of the bottleneck");
    await demandAccessible(page, "save as a template");
    await page.getByRole("button", { name: "Save", exact: true }).last().click();
    await page.getByRole("heading", { name: "Templates" }).waitFor();
    await page.getByText("Two hosts and a router between them.").waitFor();
    await demandAccessible(page, "templates");
    await page.getByRole("button", { name: "New lab: drawn" }).click();
    const narrow = page.getByLabel("narrow");
    await page.getByLabel("Name", { exact: true }).fill("begun");
    await narrow.fill("fast");
    await page.getByRole("button", { name: "Make it" }).click();
    await until("the field is marked", async () => (await narrow.getAttribute("aria-invalid")) === "true");
    await demandAccessible(page, "a lab of a template");
    await narrow.fill("3Mbit");
    await page.getByRole("button", { name: "Make it" }).click();
    await drawn.text.getByText("rate: 3Mbit").waitFor();
    await drawn.text.getByText("# the bottleneck").waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Templates" }).waitFor();
    await page.getByRole("button", { name: "Delete drawn" }).click();
    await page.getByText("No templates yet").waitFor();
    await page.goto(`${origin}/#/labs`);
    await page.getByRole("link", { name: "drawn" }).click();
    await page.getByText("v1 · Saved").waitFor();
  },

  "two people write one lab, and neither's words are lost": async () => {
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.getByText("v1 · Saved").waitFor();
    const add = (whose) => whose.getByRole("button", { name: "Add Host" }).click();
    // Who has changed nothing sees the other's version, and is told whose it is.
    await add(page);
    await page.keyboard.press("Control+s");
    await page.getByText("v2 · Saved").waitFor();
    await other.getByText(/has saved version 2/).waitFor();
    // Who has is asked before they save, and what they wrote stays.
    await add(other);
    await add(page);
    await page.keyboard.press("Control+s");
    await page.getByText("v3 · Saved").waitFor();
    await other
      .getByRole("button", { name: "Keep mine" })
      .or(other.getByText(/version 3/))
      .first()
      .waitFor();
    await demandAccessible(other, "a lab of two");
    await other.getByRole("alert").getByRole("button").last().click();
    await other.getByText("v4 · Saved").waitFor();
    await page.getByText(/has saved version 4/).waitFor();
    await other.close();
  },

  "a server that is lost and back is told of, and nothing is missed": async () => {
    const away = page.getByText("The connection is away").first();
    await page.getByRole("button", { name: "Add Host" }).click();
    await page.context().setOffline(true);
    await page.keyboard.press("Control+s");
    // At the lab, whatever was told there before, and not only among what is wrong with the text.
    await page.getByRole("alert").getByText("the server does not answer").waitFor();
    await page.context().setOffline(false);
    await page.keyboard.press("Control+s");
    await page.getByText("v5 · Saved").waitFor();
    await until("no banner", async () => (await away.count()) === 0);
    // A proxy answers for a server that is away, and browsers do not come back from that by themselves.
    await page.route("**/api/v1/events", (route) => route.fulfill({ status: 502, body: "" }));
    await page.reload();
    await away.waitFor();
    await page.unroute("**/api/v1/events");
    await away.waitFor({ state: "detached" });
  },

  "a person is let in, and what was done is written down": async () => {
    await page.getByRole("navigation").getByRole("link", { name: "Desk" }).click();
    await page.getByRole("tab", { name: "People" }).click();
    await page.getByLabel("Name of a new person").fill("ann");
    await page.getByRole("button", { name: "Add, and make a link" }).click();
    const link = await page.getByText("/login?once=").textContent();
    await page.getByRole("button", { name: "Change ann" }).click();
    await demandAccessible(page, "a person");
    await page.getByRole("button", { name: "Add a role" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("reader", { exact: true }).waitFor();
    await demandAccessible(page, "people");
    await page.setViewportSize({ width: 400, height: 800 });
    const owner = page.getByRole("cell", { name: "owner", exact: true });
    const lines = await owner.evaluate((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return new Set([...range.getClientRects()].map((one) => one.top)).size;
    });
    demand(lines === 1, `the name of a person is broken into ${lines} lines`);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("tab", { name: "Audit" }).click();
    await page.getByText("person.link").first().waitFor();
    await demandAccessible(page, "audit");
    const other = patient(await browser.newContext());
    const ann = await other.newPage();
    await ann.goto(link);
    await ann.getByRole("button", { name: "Log in" }).waitFor();
    await demandAccessible(ann, "log in");
    await ann.getByRole("button", { name: "Log in" }).click();
    await ann.getByRole("heading", { name: "Labs", exact: true }).waitFor();

    // A lab that she may read is shared with her, to change, and then no more. Nothing is offered that would be refused.
    await ann.getByRole("button", { name: "Duplicate begun" }).waitFor();
    demand((await ann.getByRole("button", { name: /^Delete/ }).count()) === 0, "ann deletes no lab of another");
    await ann.getByRole("link", { name: "begun" }).click();
    await ann.getByText("v1 · you may read it").waitFor();
    demand((await ann.getByRole("button", { name: /^(Save|Share)$/ }).count()) === 0, "ann only reads");
    await demandAccessible(ann, "a lab that one may read");
    await page.goto(`${origin}/#/labs`);
    await page.getByRole("link", { name: "begun" }).click();
    await page.getByRole("button", { name: "Share", exact: true }).click();
    await page.getByLabel("Name of a person").fill("ann");
    await page.getByRole("button", { name: "Share it" }).click();
    await page.getByLabel("What ann may do").selectOption("may change it");
    await page.getByLabel("What ann may do").and(page.locator(":has(option:checked[value=editor])")).waitFor();
    await demandAccessible(page, "share");
    const seesSoon = (words) =>
      until(words, async () => {
        await ann.reload();
        await ann.getByText(/v1 · /).waitFor();
        return (await ann.getByText(words).count()) === 1;
      });
    await seesSoon("v1 · Saved");
    await page.getByRole("button", { name: "End it for ann" }).click();
    await page.getByText("Nobody else has it.").waitFor();
    await seesSoon("v1 · you may read it");
    await page.keyboard.press("Escape");
    await ann.goto(`${origin}/#/labs`);
    await page.goto(`${origin}/#/desk/requests`);

    // What needs more than ann may use waits for somebody who approves it.
    await ann.getByRole("button", { name: "New lab" }).click();
    await ann.getByLabel("Name").fill("large");
    await ann.getByRole("button", { name: "Make it" }).click();
    await ann.getByRole("button", { name: "▶ Run" }).click();
    await ann.getByText("waits for somebody to approve it").waitFor();
    await page.getByRole("tab", { name: "Requests (1)" }).click();
    await page.getByText("1048576 without approval").waitFor();
    await demandAccessible(page, "requests");
    await page.getByRole("button", { name: /^Approve/ }).click();
    await page.getByText("Nobody asks for anything.").waitFor();
    await ann.getByText("finished").first().waitFor();

    // A token of her own, which is shown once, and ended.
    await ann.getByRole("link", { name: "ann" }).click();
    await ann.getByText("1.05 MB").waitFor();
    await ann.getByLabel("Label").fill("nightly");
    await ann.getByLabel("Scopes").fill("Run.* Lab.Read");
    await ann.getByRole("button", { name: "Make a token" }).click();
    await ann
      .getByText(/dilaton_|shown once/)
      .first()
      .waitFor();
    await demandAccessible(ann, "account");
    await ann.getByRole("button", { name: "End nightly" }).click();
    await ann.getByText("You have none.").waitFor();
    await ann.getByRole("button", { name: "Log out" }).click();
    await ann.getByRole("button", { name: "Log in" }).waitFor();
    const provider = ann.getByRole("link", { name: "Log in by login.invalid" });
    demand((await provider.getAttribute("href")) === "/api/v1/session/provider", "the way to the provider");
    await demandAccessible(ann, "login");
    await other.close();
  },

  "nothing was complained of": async () => demand(!complaints.length, complaints.join("\n")),
});
await browser.close();
