// The labs and runs that one may see, kept as the server's event stream tells. An event says that something is new, not
// what it is now, so what it is about is fetched; while the connection is away the browser comes back by itself with the
// number of the last event, and misses nothing.
import { API, ask, Problem, words } from "../api/client";
import type { Lab, Run } from "../api/types";

const RUNS_SHOWN = 200;
const AGAIN_HOST_MS = 3000;

class Catalogue {
  labs = $state<Lab[]>([]);
  runs = $state<Run[]>([]);
  isLoaded = $state(false);
  isAway = $state(false);
  wrong = $state("");
  /** Another number whenever the store of images, or a pull, has changed. */
  imagesChanged = $state(0);
  private timer = 0;
  private events: EventSource | null = null;

  async begin(): Promise<void> {
    this.end();
    this.listen();
    await this.load();
  }

  private listen(): void {
    this.events = new EventSource(`${API}/events`);
    this.events.addEventListener("ready", () => void this.load());
    this.events.addEventListener("lab", (event) => void this.labChanged(JSON.parse(event.data)));
    this.events.addEventListener("run", (event) => void this.runChanged(JSON.parse(event.data)));
    this.events.addEventListener("image", () => this.imagesChanged++);
    this.events.addEventListener("open", () => (this.isAway = false));
    this.events.addEventListener("error", () => {
      this.isAway = true;
      // A browser comes back by itself from a lost connection, not from an answer that is none, as a proxy's.
      if (this.events?.readyState !== EventSource.CLOSED) return;
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => {
        this.listen();
        void this.load();
      }, AGAIN_HOST_MS);
    });
  }

  end(): void {
    clearTimeout(this.timer);
    this.events?.close();
    this.events = null;
    this.labs = [];
    this.runs = [];
    this.isLoaded = false;
  }

  async load(): Promise<void> {
    try {
      const [labs, runs] = await Promise.all([
        ask<Lab[]>("GET", "/labs"),
        ask<Run[]>("GET", `/runs?count=${RUNS_SHOWN}`),
      ]);
      this.labs = labs;
      this.runs = runs;
      this.isLoaded = true;
      this.wrong = "";
    } catch (error) {
      this.wrong = words(error);
    }
  }

  lab(id: string): Lab | undefined {
    return this.labs.find((one) => one.lab === id);
  }

  run(id: string): Run | undefined {
    return this.runs.find((one) => one.run === id);
  }

  /** The newest run of each lab. */
  get newest(): Map<string, Run> {
    const found = new Map<string, Run>();
    for (const run of this.runs) if (run.lab && !found.has(run.lab)) found.set(run.lab, run);
    return found;
  }

  private async labChanged(told: { lab: string; version: number | null }): Promise<void> {
    const others = (labs: Lab[]) => labs.filter((one) => one.lab !== told.lab);
    const now = told.version === null ? null : await present<Lab>(`/labs/${told.lab}`);
    this.labs = now ? [...others(this.labs), now].sort((a, b) => (a.lab < b.lab ? -1 : 1)) : others(this.labs);
  }

  private async runChanged(told: { run: string; state: string | null }): Promise<void> {
    const others = (runs: Run[]) => runs.filter((one) => one.run !== told.run);
    const now = told.state === null ? null : await present<Run>(`/runs/${told.run}`);
    this.runs = now ? [...others(this.runs), now].sort((a, b) => b.number - a.number) : others(this.runs);
  }
}

/** What is at a path now; null: it is gone. */
async function present<T>(path: string): Promise<T | null> {
  try {
    return await ask<T>("GET", path);
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}

export const catalogue = new Catalogue();
