// The one store of a lab that is written: its text and positions with their history, what the server says of the text, and
// what is selected. The text is the truth; the canvas is drawn from it, and what is drawn changes it.
import { ask, Problem, words } from "../api/client";
import type { Drawing, LabChecked, Positions, Run, Told, WholeLab } from "../api/types";
import { completed, layOut, type LayoutName } from "../canvas/layouts";
import type { Point } from "../canvas/shape";
import { mapOf, mapUnder, spotsOn, type Places } from "../canvas/map";
import * as lab from "../lab/document";
import { History, type Spots } from "../lab/history";
import { networkOf, type Network } from "../run/network";
import type { Mistake } from "./yaml";
import { placesOf } from "./mistakes";

/** By which what is dragged onto the canvas says what kind of node it is. */
export const KIND_TYPE = "application/x-dilaton-kind";

const CHECK_HOST_MS = 350;

/** What a lab may say of a node that needs no server to be understood; kinds of its own do. */
const KINDS = new Set(["host", "router", "nat", "switch", "ovs", "controller"]);

export interface Shown {
  nodes: { name: string; kind: string; isWritten: boolean }[];
  links: { id: string; place: number | null; ends: [string, string]; label: string }[];
}

export class EditorStore {
  whole = $state.raw<WholeLab | null>(null);
  wrong = $state("");
  stale = $state.raw<{ version: number; text: string } | null>(null);
  /** The version of somebody else that has become the one here; 0: none. */
  news = $state(0);
  isBusy = $state(false);
  text = $state("");
  positions = $state.raw<Spots>({});
  /** Where on earth nodes are, of a network that says so. */
  places = $state.raw<Places>({});
  canUndo = $state(false);
  canRedo = $state(false);
  nodes = $state.raw<string[]>([]);
  links = $state.raw<string[]>([]);
  told = $state.raw<Told[]>([]);
  doubts = $state.raw<Told[]>([]);
  checkedText = $state("");
  network = $state.raw<Network | null>(null);
  /** What the lab as it was last read without a mistake is drawn from. */
  drawing = $state.raw<Drawing | null>(null);

  private history = new History({ text: "", positions: {} });
  private savedText = $state("");
  private savedPositions = $state.raw<Spots>({});
  private timer = 0;
  private isAsking = false;
  /** Whether the text has become another while the server read the one before. */
  private isDue = false;
  private copied: string[] = [];
  readonly lab = $derived(lab.readLab(this.text));

  readonly map = $derived(mapUnder(this.positions, this.places));

  constructor(readonly id: string) {
    void this.load();
  }

  get isDirty(): boolean {
    return this.text !== this.savedText || this.positions !== this.savedPositions;
  }

  /** Whether one may do this with the lab, which may be another's. */
  may(permission: string): boolean {
    return this.whole?.permissions.includes(permission) ?? false;
  }

  get isChecked(): boolean {
    return this.checkedText === this.text;
  }

  get mistakes(): (Mistake & { field: string })[] {
    if (this.lab.mistakes.length) return this.lab.mistakes.map((one) => ({ ...one, field: "", isDoubt: false }));
    return [
      ...this.told.map((one) => ({ ...one, isDoubt: false })),
      ...this.doubts.map((one) => ({ ...one, isDoubt: true })),
    ];
  }

  /** What a run is likely to take; null: the text has mistakes, or was not read yet. */
  get forecast(): Drawing["forecast"] | null {
    const isGood = this.isChecked && !this.mistakes.some((one) => !one.isDoubt);
    return (isGood && this.drawing?.forecast) || null;
  }

  /** A link as it is shown that the plan calls so. */
  linkNamed(name: string): Shown["links"][number] | undefined {
    const wanted = this.network?.links.find((link) => link.name === name)?.ends.map((end) => end.node);
    return wanted && this.shown.links.find(({ ends: [a, b] }) => wanted.includes(a) && wanted.includes(b));
  }

  get wrongPlaces() {
    return placesOf(this.told, this.lab);
  }

  /** What the canvas shows: what is written, and what a topology makes beside it, as the last plan has it. */
  readonly shown = $derived.by((): Shown => {
    const known = new Map(this.network?.nodes.map((node) => [node.name, node.kind]));
    const written = new Map(this.lab.nodes.map((node) => [node.name, node.kind]));
    const nodes = this.lab.nodes.map(({ name, kind }) => ({
      name,
      kind: KINDS.has(kind) ? kind : (known.get(name) ?? "host"),
      isWritten: true,
    }));
    const links: Shown["links"] = this.lab.links.map((link) => ({
      id: `#${link.place}`,
      place: link.place,
      ends: [link.ends[0].node, link.ends[1].node],
      label: [link.rate, link.delay].filter(Boolean).join(" · "),
    }));
    if (this.lab.hasTopology && this.network) {
      const drawn = new Set(links.map((link) => [...link.ends].sort().join(" ")));
      for (const node of this.network.nodes) {
        if (!written.has(node.name)) nodes.push({ name: node.name, kind: node.kind, isWritten: false });
      }
      for (const link of this.network.links) {
        const ends: [string, string] = [link.ends[0].node, link.ends[1].node];
        if (!drawn.has([...ends].sort().join(" "))) links.push({ id: link.name, place: null, ends, label: "" });
      }
    }
    return { nodes, links };
  });

  readonly spots = $derived.by((): Map<string, Point> =>
    completed(this.positions, {
      nodes: this.shown.nodes.map((node) => node.name),
      links: this.shown.links.map((link) => link.ends),
    }),
  );

  /** Hears that there is another version. Where nobody has changed anything it becomes the one here; else who writes is
   * asked. */
  async heard(version: number): Promise<void> {
    if (!this.whole || this.isBusy || version <= this.whole.version || version === this.stale?.version) return;
    try {
      const [theirs, layout] = await this.fetch();
      if (theirs.version <= this.whole.version) return;
      // Looked at only now: somebody may have typed meanwhile.
      if (this.isDirty) {
        this.stale = { version: theirs.version, text: theirs.text };
      } else {
        this.begin(theirs, layout);
        this.news = theirs.version;
      }
    } catch (error) {
      this.wrong = words(error);
    }
  }

  async load(): Promise<void> {
    try {
      this.begin(...(await this.fetch()));
    } catch (error) {
      this.wrong = words(error);
    }
  }

  private async fetch(): Promise<[WholeLab, Positions]> {
    const [whole, layout] = await Promise.all([
      ask<WholeLab>("GET", `/labs/${this.id}`),
      ask<Positions>("GET", `/labs/${this.id}/layout`),
    ]);
    return [whole, layout];
  }

  private begin(whole: WholeLab, { positions, places = {} }: Positions): void {
    this.places = places;
    this.whole = whole;
    this.savedText = whole.text;
    this.savedPositions = positions;
    this.history = new History({ text: whole.text, positions });
    this.take();
    this.stale = null;
    clearTimeout(this.timer);
    void this.check();
  }

  write(text: string, options: { isTyped?: boolean; positions?: Spots } = {}): void {
    if (!this.may("Lab.Write")) return;
    this.history.write({ text, positions: options.positions ?? this.positions }, options.isTyped);
    this.take();
  }

  undo(): void {
    this.history.undo();
    this.take();
  }

  redo(): void {
    this.history.redo();
    this.take();
  }

  /** Changes the text by something drawn; what cannot be is told. */
  draw(change: () => { text: string; positions?: Spots }): void {
    try {
      const { text, positions } = change();
      this.write(text, { positions });
      this.wrong = "";
    } catch (error) {
      this.wrong = words(error);
    }
  }

  addNode(kind: string, at?: Point, image = ""): void {
    const name = lab.freeName(
      this.shown.nodes.map((node) => node.name),
      kind,
    );
    this.draw(() => ({
      text: lab.addNode(this.text, name, kind, image),
      positions: at ? this.placed({ [name]: at }) : undefined,
    }));
    this.select([name], []);
  }

  /** Puts the chosen nodes that the text says into a group. */
  group(into: string): void {
    const written = this.shown.nodes.filter((node) => node.isWritten && this.nodes.includes(node.name));
    this.draw(() => ({
      text: lab.group(
        this.text,
        written.map((node) => node.name),
        into,
      ),
    }));
  }

  addLink(from: string, to: string): void {
    this.draw(() => ({ text: lab.addLink(this.text, from, to) }));
  }

  addLinks(pairs: readonly (readonly [string, string])[]): void {
    this.draw(() => ({ text: pairs.reduce((text, [from, to]) => lab.addLink(text, from, to), this.text) }));
  }

  removeSelected(): void {
    const places = this.shown.links
      .filter((link) => this.links.includes(link.id) && link.place !== null)
      .map((link) => link.place!);
    this.draw(() => ({ text: lab.removeNodes(lab.removeLinks(this.text, places), this.nodes) }));
    this.select([], []);
  }

  rename(from: string, to: string): void {
    if (!to || from === to) return;
    if (this.shown.nodes.some((node) => node.name === to)) {
      this.wrong = `${to}: there is a node of that name`;
      return;
    }
    const spot = this.spots.get(from);
    this.draw(() => ({
      text: lab.renameNode(this.text, from, to),
      positions: spot ? this.placed({ [to]: spot }) : undefined,
    }));
    this.select([to], []);
  }

  setField(path: lab.Path, written: string): void {
    this.draw(() => ({ text: lab.setField(this.text, path, written) }));
  }

  copy(): void {
    this.copied = this.nodes.filter((name) => this.lab.nodes.some((node) => node.name === name));
  }

  paste(): void {
    if (!this.copied.length) return;
    this.draw(() => {
      const { text, names } = lab.duplicate(this.text, this.copied);
      const spots: Record<string, Point> = {};
      for (const [name, copy] of names) {
        const at = this.spots.get(name);
        if (at) spots[copy] = { x: at.x + 60, y: at.y + 60 };
      }
      this.nodes = [...names.values()];
      return { text, positions: this.placed(spots) };
    });
  }

  move(spots: ReadonlyMap<string, Point>): void {
    this.write(this.text, { positions: this.placed(Object.fromEntries(spots)) });
  }

  arrange(name: LayoutName | "map"): void {
    const map = name === "map" ? mapOf(this.places) : null;
    if (map) this.write(this.text, { positions: { ...this.placed({}), ...spotsOn(map, this.places) } });
    if (name === "map") return;
    const { nodes, links } = this.shown;
    this.move(layOut(name, { nodes: nodes.map((node) => node.name), links: links.map((link) => link.ends) }));
  }

  /** Puts the selected nodes into a row or a column. */
  align(along: "x" | "y"): void {
    const chosen = this.nodes
      .map((name) => [name, this.spots.get(name)] as const)
      .filter((one) => one[1] !== undefined);
    const mean = chosen.reduce((sum, [, at]) => sum + at![along], 0) / chosen.length;
    this.move(new Map(chosen.map(([name, at]) => [name, { ...at!, [along]: Math.round(mean) }])));
  }

  select(nodes: string[], links: string[]): void {
    this.nodes = nodes;
    this.links = links;
  }

  async save(): Promise<boolean> {
    if (!this.whole) return false;
    this.isBusy = true;
    try {
      const [text, positions] = [this.text, this.positions];
      if (text !== this.savedText) {
        this.whole = await ask<WholeLab>("PUT", `/labs/${this.id}`, { base: this.whole.version, text });
        this.savedText = text;
      }
      if (positions !== this.savedPositions) {
        await ask("PUT", `/labs/${this.id}/layout`, { positions, places: this.places });
        this.savedPositions = positions;
      }
      this.wrong = "";
      return true;
    } catch (error) {
      if (error instanceof Problem && error.type === "urn:dilaton:stale") {
        this.stale = { version: Number(error.more["version"]), text: String(error.more["text"]) };
      }
      this.wrong = words(error);
      return false;
    } finally {
      this.isBusy = false;
    }
  }

  /** Keeps what is here, although somebody else has written a version meanwhile, which stays among the versions. */
  async overwrite(): Promise<void> {
    if (!this.stale || !this.whole) return;
    this.whole = { ...this.whole, version: this.stale.version };
    this.stale = null;
    await this.save();
  }

  /** Has the lab run; one that stays goes on when nothing is left to do. */
  async launch(stays: boolean): Promise<Run | null> {
    if (this.isDirty && !(await this.save())) return null;
    try {
      return await ask<Run>("POST", `/labs/${this.id}/runs`, { stays });
    } catch (error) {
      this.wrong = words(error);
      return null;
    }
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private placed(spots: Record<string, Point>): Spots {
    const rounded = Object.entries(spots).map(([name, at]) => [name, [Math.round(at.x), Math.round(at.y)] as const]);
    const all = [...this.spots].map(([name, at]) => [name, [Math.round(at.x), Math.round(at.y)] as const] as const);
    return Object.fromEntries([...all, ...rounded]);
  }

  private take(): void {
    const { text, positions } = this.history.present;
    const isOther = text !== this.text;
    this.text = text;
    this.positions = positions;
    this.canUndo = this.history.canUndo;
    this.canRedo = this.history.canRedo;
    if (isOther) {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.check(), CHECK_HOST_MS);
    }
  }

  /** Has the server read the text: one at a time, however long a large lab takes, and the newest after that. */
  private async check(): Promise<void> {
    this.isDue = this.isAsking;
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      await this.read();
    } finally {
      this.isAsking = false;
    }
    if (this.isDue) await this.check();
  }

  private async read(): Promise<void> {
    const text = this.text;
    let told: Told[] = [];
    let doubts: Told[] = [];
    try {
      const checked = await ask<LabChecked>("POST", "/check", { text, is_drawn: true });
      doubts = checked.doubts;
      if (text === this.text) {
        this.drawing = checked.drawing;
        this.network = networkOf(checked.drawing);
      }
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      told = error.problems.length ? error.problems : [{ line: 0, column: 0, field: "", message: error.message }];
    }
    // Of a text that was changed meanwhile the next check tells.
    if (text !== this.text) return;
    this.told = told;
    this.doubts = doubts;
    this.checkedText = text;
  }
}
