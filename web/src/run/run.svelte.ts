// The one store of a run that is looked at: what it tells (its event stream, or what it has written once it is over), its
// samples and its record. Views are functions of it and of the instant that is looked at; they ask the server nothing.
import { API, ask, bytes, permissionsAt, Problem, text, words } from "../api/client";
import type { Drawing, FaultsShown, LinksShown, Positions, Run, RunStatus } from "../api/types";
import type { Places } from "../canvas/map";
import type { LiveCapture } from "../nodes/capture.svelte";
import { emptyPicture, isFinal, pictureAt, readEvents, take, type Happening, type RunPicture } from "./happenings";
import { endsShown, networkOf, type End, type NetLink, type Network } from "./network";
import { Reader, Samples } from "./samples";
import { loadOf, loadOfRecord, Looks, type Load } from "./load";
import { guestsOf, machinesOf, type OneMachine } from "./machines";
import type { RunRecord } from "./record";
import { Standings } from "./standing";

const LOOK_HOST_MS = 700;

export class RunStore {
  run = $state<Run | null>(null);
  drawing = $state.raw<Drawing | null>(null);
  network = $state.raw<Network | null>(null);
  record = $state.raw<RunRecord | null>(null);
  /** What the run has written down of itself so far, of which its guests are told. */
  private begun = $state.raw<RunRecord | null>(null);
  status = $state.raw<RunStatus | null>(null);
  links = $state.raw<LinksShown | null>(null);
  faults = $state.raw<FaultsShown | null>(null);
  positions = $state.raw<Record<string, [number, number]>>({});
  places = $state.raw<Places>({});
  /** What one may do with this run, which may be another's. */
  permissions = $state.raw<string[]>([]);
  wrong = $state("");
  isAway = $state(false);
  /** Which sample was taken in last; views that show samples depend on it. */
  sampled = $state(0);
  /** What is captured from here, or was. */
  captures = $state.raw<LiveCapture[]>([]);
  /** The instant that is looked at, in nanoseconds of virtual time; null: now. */
  atNs = $state<number | null>(null);

  readonly samples = new Samples();
  /** How it stood, as that was told so far. */
  readonly standings = new Standings();
  private readonly looks = new Looks();
  private reader = new Reader(
    this.samples,
    (guest, start) => bytes(`/runs/${this.id}/samples?guest=${encodeURIComponent(guest)}&start=${start}`),
    () => (this.sampled += 1),
  );
  private happenings: Happening[] = [];
  private live = $state.raw<RunPicture>(emptyPicture());
  private stream: EventSource | null = null;
  private timer = 0;
  private isClosed = false;
  private isEnded = false;
  private wantedLogs = "";
  private wanted: { node: string; argv: string[] } | null = null;
  private drawn: Promise<void> = Promise.resolve();
  private isLooking = false;
  private isTold = false;
  private shownEnds = $derived(endsShown(this.links?.links ?? []));

  /** Those that it is spread over; none: it is on one. */
  readonly machines = $derived(machinesOf(this.record ?? this.begun, this.network?.nodes ?? []));
  /** Its guests where it is on one machine; none: it has only one. */
  readonly guests = $derived(guestsOf(this.record ?? this.begun, this.network?.nodes ?? []));

  constructor(readonly id: string) {
    void this.begin();
  }

  may(permission: string): boolean {
    return this.permissions.includes(permission);
  }

  get isOver(): boolean {
    return this.run !== null && isFinal(this.run.state);
  }

  /** Whether its nodes are there, and heed who works in them. */
  get isGoing(): boolean {
    return this.run?.state === "running" || this.run?.state === "held";
  }

  /** How much a machine, or a guest, works and waits: lately, or in the whole of a run that is over; at an instant of the past, shortly before. */
  loadOf(machine: OneMachine): Load {
    if (this.atNs !== null) {
      const looks = this.standings.looksAt(this.atNs);
      return looks ? loadOf(machine, ...looks) : { busy: null, waits: null };
    }
    if (this.record) return loadOfRecord(machine, this.record);
    void this.status;
    return this.looks.of(machine);
  }

  /** Virtual seconds per host second, as it goes now; null: it is not known. */
  get speed(): number | null {
    void this.status;
    return this.looks.speed;
  }

  /** How far the run has come, in nanoseconds of virtual time. */
  get reachedNs(): number {
    const told = this.isOver ? (this.run?.virtual_s ?? 0) : (this.status?.clock?.virtual_s ?? 0);
    return Math.max(told * 1e9, this.live.events.at(-1)?.t_ns ?? 0);
  }

  get shownNs(): number {
    return this.atNs ?? Infinity;
  }

  /** The picture of the instant that is looked at. */
  get picture(): RunPicture {
    return this.atNs === null ? this.live : pictureAt(this.happeningsNow(), this.atNs);
  }

  get allEvents() {
    return this.live.events;
  }

  /** The ends of a link as they are now, as far as the run has told that; at an instant of the past, as they were planned. */
  endsOf(link: NetLink): readonly End[] {
    return (this.atNs === null ? this.shownEnds.get(link.name) : undefined) ?? link.ends;
  }

  /** Told by the catalogue that the run has another state. */
  async changed(run: Run): Promise<void> {
    this.run = run;
    if (isFinal(run.state)) await this.ended();
    else if (!this.stream) this.follow();
  }

  close(): void {
    this.isClosed = true;
    this.stream?.close();
    for (const capture of this.captures) capture.close();
    clearTimeout(this.timer);
  }

  async steer(what: string, body?: unknown): Promise<void> {
    this.wrong = "";
    try {
      await ask("POST", `/runs/${this.id}/${what}`, body);
      await this.look();
    } catch (error) {
      this.wrong = words(error);
    }
  }

  /** A terminal that is to be opened as soon as terminals are shown. */
  wantTerminal(node: string, argv: string[]): void {
    this.wanted = { node, argv };
  }

  takeWanted(): { node: string; argv: string[] } | null {
    const wanted = this.wanted;
    this.wanted = null;
    return wanted;
  }

  /** Whose logs are to be shown as soon as logs are. */
  wantLogs(node: string): void {
    this.wantedLogs = node;
  }

  takeWantedLogs(): string {
    const wanted = this.wantedLogs;
    this.wantedLogs = "";
    return wanted;
  }

  private happeningsNow(): Happening[] {
    void this.live;
    return this.happenings;
  }

  private async begin(): Promise<void> {
    try {
      const run = await ask<Run>("GET", `/runs/${this.id}`);
      this.permissions = await permissionsAt(run.path);
      this.run = run;
    } catch (error) {
      this.wrong = words(error);
      return;
    }
    this.drawn = this.fetchDrawing();
    if (this.run.lab) void this.fetchPositions(this.run.lab);
    if (this.isOver) await this.ended();
    else this.follow();
  }

  private follow(): void {
    if (this.isClosed || ["requested", "queued"].includes(this.run?.state ?? "")) return;
    this.stream?.close();
    // A stream begins with all that has been so far.
    this.happenings = [];
    let picture = emptyPicture();
    let isDue = false;
    const show = () => {
      isDue = false;
      this.live = { ...picture };
    };
    const hear = (event: MessageEvent<string>) => {
      const happening = JSON.parse(event.data) as Happening;
      this.happenings.push(happening);
      picture = take(picture, happening);
      if (!isDue) setTimeout(show, 50);
      isDue = true;
    };
    this.stream = new EventSource(`${API}/runs/${this.id}/happenings`);
    for (const kind of ["state", "progress", "event", "clock", "again"]) this.stream.addEventListener(kind, hear);
    this.stream.addEventListener("open", () => (this.isAway = false));
    this.stream.addEventListener("error", () => {
      this.isAway = true;
      // A browser does not come back from an answer that is none, as a proxy's: it is followed anew.
      if (this.stream?.readyState === EventSource.CLOSED) this.stream = null;
    });
    this.stream.addEventListener("gone", () => this.stopStream());
    this.stream.addEventListener("over", () => {
      // What became of it is told as soon as it is written down.
      this.isTold = true;
      this.stopStream();
    });
    if (!this.isLooking) void this.keepLooking();
  }

  private stopStream(): void {
    this.stream?.close();
    this.stream = null;
    this.isAway = false;
  }

  private async keepLooking(): Promise<void> {
    this.isLooking = !this.isClosed && !this.isOver && !this.isTold;
    if (!this.isLooking) return;
    await this.look();
    this.timer = window.setTimeout(() => {
      // A run that has only just been launched has nobody who tells of it yet.
      if (!this.stream && !this.isOver && !this.isTold) this.follow();
      void this.keepLooking();
    }, LOOK_HOST_MS);
  }

  private async look(): Promise<void> {
    // Before its clock goes, and when it has come to its end, a run has nothing to say of it.
    if (this.live.state !== "running") return;
    const quietly = (error: unknown) => {
      if (!(error instanceof Problem)) throw error;
    };
    await Promise.all([
      this.begun ?? text(`/runs/${this.id}/record`).then((json) => (this.begun = JSON.parse(json)), quietly),
      ask<RunStatus>("GET", `/runs/${this.id}/status`).then((status) => this.hear(status), quietly),
      ask<LinksShown>("GET", `/runs/${this.id}/links`).then((links) => (this.links = links), quietly),
      ask<FaultsShown>("GET", `/runs/${this.id}/faults`).then((faults) => (this.faults = faults), quietly),
      this.fetchSamples(),
    ]);
  }

  private hear(status: RunStatus): void {
    this.looks.note(status);
    this.status = status;
    const { clock, verdict, guests } = status;
    if (!clock) return;
    const look = { hostS: clock.host_s, virtualS: clock.virtual_s, guests };
    this.standings.note({ atNs: clock.virtual_s * 1e9, verdict, look });
  }

  private async ended(): Promise<void> {
    if (this.isEnded) return;
    this.isEnded = true;
    this.stopStream();
    clearTimeout(this.timer);
    const [record, events, standings] = await Promise.all([
      text(`/runs/${this.id}/record`).then(
        (json) => JSON.parse(json) as RunRecord,
        () => null,
      ),
      text(`/runs/${this.id}/events`).catch(() => ""),
      text(`/runs/${this.id}/verdicts`).catch(() => ""),
      this.fetchSamples(),
    ]);
    this.standings.read(standings);
    this.record = record;
    const trace = record?.fidelity?.tdf_trace ?? [];
    this.happenings = [
      ...trace.map((change): Happening => ({ kind: "clock", change })),
      ...readEvents(events).map((event): Happening => ({ kind: "event", event })),
      { kind: "state", state: this.run?.state ?? "" },
    ];
    this.live = pictureAt(this.happenings, Infinity);
  }

  private async fetchDrawing(): Promise<void> {
    try {
      this.drawing = await ask<Drawing>("GET", `/runs/${this.id}/drawing`);
      this.network = networkOf(this.drawing);
    } catch (error) {
      this.wrong = words(error);
    }
  }

  private async fetchPositions(lab: string): Promise<void> {
    const found = await ask<Positions>("GET", `/labs/${lab}/layout`).catch(() => null);
    if (!found) return;
    this.positions = found.positions;
    this.places = found.places ?? {};
  }

  private async fetchSamples(): Promise<void> {
    await this.drawn;
    if (!this.drawing?.interfaces_period_ns) return;
    await this.reader.read(this.drawing.guests);
  }
}
