// The labs and runs that one may see, kept as the server's event stream tells. An event says that something is new, not
// what it is now, so what it is about is fetched; while the connection is away the browser comes back by itself with the
// number of the last event, and misses nothing.
import { API, ask, Problem, words } from "../api/client";
import type { Lab, Run } from "../api/types";
import { Turns } from "./turns";

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
  /** A list that was asked for before a lab was made lacks it, and must not come after it. */
  private readonly turns = new Turns();
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
    this.events.addEventListener("lab", (event) => this.labChanged(JSON.parse(event.data)));
    this.events.addEventListener("run", (event) => this.runChanged(JSON.parse(event.data)));
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

  load(): Promise<void> {
    return this.ask("all", async () => {
      const [labs, runs] = await Promise.all([
        ask<Lab[]>("GET", "/labs"),
        ask<Run[]>("GET", `/runs?count=${RUNS_SHOWN}`),
      ]);
      return () => {
        this.labs = labs;
        this.runs = runs;
        this.isLoaded = true;
        this.wrong = "";
      };
    });
  }

  /** Asks when it is its turn, and takes the answer unless nobody follows these events any more. */
  private ask(key: string, question: () => Promise<() => void>): Promise<void> {
    const { events } = this;
    return this.turns.take(key, async () => {
      if (events !== this.events) return;
      try {
        const take = await question();
        if (events === this.events) take();
      } catch (error) {
        if (events === this.events) this.wrong = words(error);
      }
    });
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

  private labChanged(told: { lab: string; version: number | null }): void {
    void this.ask(`lab ${told.lab}`, async () => {
      const others = this.labs.filter((one) => one.lab !== told.lab);
      const now = told.version === null ? null : await present<Lab>(`/labs/${told.lab}`);
      return () => (this.labs = now ? [...others, now].sort((a, b) => (a.lab < b.lab ? -1 : 1)) : others);
    });
  }

  private runChanged(told: { run: string; state: string | null }): void {
    void this.ask(`run ${told.run}`, async () => {
      const others = this.runs.filter((one) => one.run !== told.run);
      const now = told.state === null ? null : await present<Run>(`/runs/${told.run}`);
      return () => (this.runs = now ? [...others, now].sort((a, b) => b.number - a.number) : others);
    });
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
