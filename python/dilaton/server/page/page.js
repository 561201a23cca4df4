// The page's only script: it asks the API and shows what it says, always as text, never as markup.
"use strict";

const API = "/api/v1";
const GOING = ["queued", "starting", "running", "held"];
const place = (id) => document.getElementById(id);

async function ask(method, path, body) {
  const answer = await fetch(API + path, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  const said = text ? JSON.parse(text) : null;
  if (!answer.ok) throw Object.assign(new Error(said.detail), { status: answer.status, problems: said.problems ?? [] });
  return said;
}

function tell(text) {
  place("told").textContent = text;
}

function doing(label, about, act) {
  const button = document.createElement("button");
  button.textContent = label;
  button.setAttribute("aria-label", `${label} ${about}`);
  button.addEventListener("click", async () => {
    try {
      await act();
      tell(`${label} ${about}: done`);
    } catch (error) {
      tell(`${label} ${about}: ${error.message}`);
    }
    await show();
  });
  return button;
}

function link(label, about, href) {
  const anchor = document.createElement("a");
  anchor.textContent = label;
  anchor.setAttribute("aria-label", `${label} of ${about}`);
  anchor.href = href;
  return anchor;
}

function row(cells) {
  const line = document.createElement("tr");
  for (const cell of cells) {
    const field = line.insertCell();
    field.append(...(Array.isArray(cell) ? cell : [String(cell ?? "")]));
  }
  return line;
}

function labRow(lab) {
  return row([lab.name, lab.folder, lab.version, [
    doing("Run", lab.name, () => ask("POST", `/labs/${lab.lab}/runs`, {})),
    doing("Delete", lab.name, () => ask("DELETE", `/labs/${lab.lab}`)),
  ]]);
}

function runRow(run) {
  const about = `run ${run.number} of ${run.name}`;
  const order = (label, what) => doing(label, about, () => ask("POST", `/runs/${run.run}/${what}`));
  const buttons = [];
  if (run.state === "running") buttons.push(order("Hold", "hold"));
  if (run.state === "held") buttons.push(order("Release", "release"));
  if (GOING.includes(run.state)) buttons.push(order("Stop", "stop"));
  else buttons.push(
    link("Report", about, `${API}/runs/${run.run}/report`),
    doing("Delete", about, () => ask("DELETE", `/runs/${run.run}`)),
  );
  buttons.push(link("Journal", about, `${API}/runs/${run.run}/journal`));
  const reached = run.virtual_s === null ? "" : `${run.virtual_s.toFixed(3)} s`;
  return row([run.number, run.name, run.reason ? `${run.state}: ${run.reason}` : run.state, run.verdict, reached, buttons]);
}

let shown = Promise.resolve();

// One after the other, so that what is older never replaces what is newer.
function show() {
  shown = shown.then(async () => {
    const [labs, runs] = await Promise.all([ask("GET", "/labs"), ask("GET", "/runs?count=50")]);
    place("labs").replaceChildren(...labs.map(labRow));
    place("runs").replaceChildren(...runs.map(runRow));
  }).catch((error) => tell(error.message));
  return shown;
}

function mistake(problem) {
  const item = document.createElement("li");
  item.textContent = `line ${problem.line}, column ${problem.column}: ${problem.field ? `${problem.field}: ` : ""}${problem.message}`;
  return item;
}

async function check() {
  try {
    const found = await ask("POST", "/check", { text: place("text").value });
    place("mistakes").replaceChildren(...found.doubts.map(mistake));
    tell(`${found.name}: no mistakes`);
  } catch (error) {
    place("mistakes").replaceChildren(...error.problems.map(mistake));
    tell(error.message);
  }
}

async function begin() {
  let me;
  try {
    me = await ask("GET", "/session");
  } catch (error) {
    place("who").textContent = "Not logged in. Open the link that the server has printed.";
    return;
  }
  place("who").textContent = `Logged in as ${me.name}`;
  place("leave").hidden = false;
  place("leave").addEventListener("click", async () => {
    await ask("DELETE", "/session");
    location.reload();
  });
  place("check").addEventListener("click", check);
  place("new").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await ask("POST", "/labs", { name: place("name").value, text: place("text").value });
      tell("kept");
    } catch (error) {
      tell(error.message);
    }
    await show();
  });
  await show();
  const events = new EventSource(`${API}/events`);
  for (const kind of ["lab", "run", "ready"]) events.addEventListener(kind, show);
}

begin();
