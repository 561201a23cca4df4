// The canvas, behind a small adapter: cytoscape.js draws, others say what. What is drawn is compared with what is there,
// so that only what has changed is touched.
import cytoscape, { type Core, type ElementDefinition } from "cytoscape";
import { colour } from "../state/theme.svelte";
import { Ground } from "./ground";
import { withRoom } from "./labels";
import type { Point } from "./shape";
import type { GroundMap } from "./map";
import { discsOf, labelScale, style, wordsOf } from "./style";

export interface DrawnNode {
  id: string;
  kind: string;
  label: string;
  /** "wrong", "running", "failed", … ; empty: nothing special. */
  state?: string;
}

export interface DrawnLink {
  id: string;
  from: string;
  to: string;
  label: string;
  colour?: string;
  width?: number;
  state?: string;
}

export interface Drawing {
  nodes: DrawnNode[];
  links: DrawnLink[];
  positions: ReadonlyMap<string, Point>;
  /** What is under it. */
  map?: GroundMap | null;
}

export interface Told {
  selected?: (nodes: string[], links: string[]) => void;
  moved?: (positions: Map<string, Point>) => void;
  opened?: (kind: "node" | "link", id: string, at: Point) => void;
  /** The ground was pressed twice, or with Shift. */
  placed?: (at: Point) => void;
  /** A link was drawn from one node to another. */
  linked?: (from: string, to: string) => void;
}

// cytoscape.js adds a style element with one rule unless there is one of this name; the policy of the page forbids that,
// and the rule is ours already (`.canvas`).
function standIn(): void {
  const id = "__________cytoscape_stylesheet";
  if (document.getElementById(id)) return;
  const mark = document.createElement("meta");
  mark.id = id;
  document.head.append(mark);
}

/** How much of the ground is left free around all, in pixels, where it is wide. */
const MARGIN = 48;

/** How large few nodes are when all is seen. */
const ZOOM_MAX = 1.4;

export class Graph {
  private readonly core: Core;
  private source: string | null = null;
  private isLinking = false;
  /** What was seen when all was; null: that never was. */
  private fitted: { zoom: number; x: number; y: number } | null = null;
  private readonly ground: Ground;
  private readonly sizes = new ResizeObserver(() => this.resize());
  private isTelling = true;
  private labelled = 1;
  private isPlacing = false;

  constructor(
    private readonly container: HTMLElement,
    private readonly told: Told = {},
    options: { isFixed?: boolean } = {},
  ) {
    standIn();
    this.core = cytoscape({
      container,
      style: style(1),
      minZoom: 0.05,
      maxZoom: 4,
      boxSelectionEnabled: true,
      autoungrabify: options.isFixed ?? false,
      hideEdgesOnViewport: false,
      textureOnViewport: false,
      pixelRatio: "auto",
    });
    this.ground = new Ground(container, this.core);
    this.core.on("zoom", () => labelScale(this.core.zoom()) !== this.labelled && this.restyle());
    this.core.on("select unselect", () => this.isTelling && this.tellSelection());
    this.core.on("mouseover mouseout", "node, edge", (event) =>
      this.name(event.type === "mouseover" ? event.target : null),
    );
    this.core.on("select unselect", () => this.name(null));
    this.core.on("zoom add remove data position select unselect", () => this.placeWords());
    this.core.on("dragfree", "node", () => this.tellPositions());
    this.core.on("cxttap", "node, edge", (event) => this.open(event));
    this.core.on("dbltap", "node, edge", (event) => this.open(event));
    this.core.on("tap", (event) => {
      const shifted = (event.originalEvent as MouseEvent | undefined)?.shiftKey;
      if (event.target === this.core && shifted) told.placed?.(event.position);
    });
    this.core.on("dbltap", (event) => event.target === this.core && told.placed?.(event.position));
    this.core.on("tapstart", "node", (event) => this.beginDrag(event));
    this.core.on(
      "mousemove tapdrag",
      (event) => this.source !== null && this.core.getElementById("ghost").position(event.position),
    );
    this.core.on("tapend", (event) => this.drop(event.position));
    this.sizes.observe(container);
  }

  show(drawing: Drawing): void {
    const wanted = new Map<string, ElementDefinition>();
    for (const node of drawing.nodes) {
      const position = { ...(drawing.positions.get(node.id) ?? { x: 0, y: 0 }) };
      wanted.set(key("n", node.id), {
        group: "nodes",
        data: {
          id: key("n", node.id),
          name: node.id,
          kind: node.kind,
          label: node.label,
          state: node.state ?? "",
        },
        position,
      });
    }
    for (const link of drawing.links) {
      const [source, target] = [key("n", link.from), key("n", link.to)];
      if (!wanted.has(source) || !wanted.has(target)) continue;
      wanted.set(key("l", link.id), {
        group: "edges",
        data: {
          id: key("l", link.id),
          name: link.id,
          source,
          target,
          label: link.label,
          colour: link.colour ?? colour("idle"),
          width: link.width ?? 2,
          state: link.state ?? "",
        },
      });
    }
    this.core.batch(() => {
      this.core.elements().forEach((element) => {
        const now = wanted.get(element.id());
        const isOther = element.isEdge() && now && now.data.source !== element.data("source");
        if ((!now || isOther) && !element.hasClass("ghost")) element.remove();
      });
      const added: ElementDefinition[] = [];
      for (const [id, definition] of wanted) {
        const there = this.core.getElementById(id);
        if (!there.length) added.push(definition);
        else {
          for (const [name, value] of Object.entries(definition.data)) {
            if (there.data(name) !== value) there.data(name, value);
          }
          const place = definition.position;
          if (place && !there.grabbed() && (there.position("x") !== place.x || there.position("y") !== place.y)) {
            there.position(place);
          }
        }
      }
      this.core.add(added);
    });
    this.ground.show(drawing.map ?? null);
    if (!this.fitted && drawing.nodes.length) this.fit();
  }

  /** Where a point of the window is on the ground of the drawing. */
  pointAt(clientX: number, clientY: number): Point {
    const box = this.container.getBoundingClientRect();
    const pan = this.core.pan();
    const zoom = this.core.zoom();
    return { x: (clientX - box.left - pan.x) / zoom, y: (clientY - box.top - pan.y) / zoom };
  }

  fit(): void {
    this.core.resize();
    // By nodes alone: words are as large as there is room for them.
    const { x1, y1, w, h } = this.core.nodes().boundingBox({ includeLabels: false });
    const [width, height] = [this.core.width(), this.core.height()];
    const margin = Math.min(MARGIN, width / 10);
    const room = Math.min((width - 2 * margin) / w, (height - 2 * margin) / h);
    const zoom = Math.min(ZOOM_MAX, Math.max(this.core.minZoom(), room)) || 1;
    this.core.viewport({ zoom, pan: { x: width / 2 - zoom * (x1 + w / 2), y: height / 2 - zoom * (y1 + h / 2) } });
    this.fitted = this.seen();
  }

  private seen(): { zoom: number; x: number; y: number } {
    return { zoom: this.core.zoom(), ...this.core.pan() };
  }

  restyle(): void {
    this.labelled = labelScale(this.core.zoom());
    this.core.style(style(this.core.zoom()));
    this.ground.paint();
  }

  /** Takes the size that there is now. Who has not chosen what they look at goes on seeing all. */
  private resize(): void {
    const now = this.seen();
    const { fitted } = this;
    if (fitted && fitted.zoom === now.zoom && fitted.x === now.x && fitted.y === now.y) this.fit();
    else this.core.resize();
  }

  select(nodes: readonly string[], links: readonly string[] = []): void {
    const wanted = new Set([...nodes.map((id) => key("n", id)), ...links.map((id) => key("l", id))]);
    this.isTelling = false;
    this.core.elements().forEach((element) => {
      if (element.selected() !== wanted.has(element.id()))
        wanted.has(element.id()) ? element.select() : element.unselect();
    });
    this.isTelling = true;
  }

  centre(node: string): void {
    const found = this.core.getElementById(key("n", node));
    const duration = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 150;
    if (found.length && duration) this.core.animate({ center: { eles: found } }, { duration });
    else if (found.length) this.core.center(found);
  }

  /** Moves the view only if a node is outside of it. */
  showNode(node: string): void {
    const box = this.core.getElementById(key("n", node)).renderedBoundingBox({ includeLabels: false });
    const isSeen = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= this.core.width() && box.y2 <= this.core.height();
    if (!isSeen) this.centre(node);
  }

  panBy(x: number, y: number): void {
    this.core.panBy({ x, y });
  }

  zoomBy(factor: number): void {
    this.core.zoom({
      level: this.core.zoom() * factor,
      renderedPosition: { x: this.container.clientWidth / 2, y: this.container.clientHeight / 2 },
    });
  }

  /** Whether links are drawn, by dragging from node to node or pressing one after the other, in place of moving nodes. */
  setLinking(isLinking: boolean): void {
    this.isLinking = isLinking;
    this.core.autoungrabify(isLinking);
    this.endDrag();
  }

  /** Has words be drawn where there is room for them, once all that changes now has changed. */
  private placeWords(): void {
    if (this.isPlacing) return;
    this.isPlacing = true;
    requestAnimationFrame(() => {
      this.isPlacing = false;
      if (this.core.destroyed()) return;
      // Those that are too small to be read have none, which is said here: cytoscape.js takes them to be larger than they are.
      const kept = withRoom(wordsOf(this.core), discsOf(this.core));
      this.core.batch(() =>
        this.core.elements("[?label]").forEach((element) => {
          const isCrowded = !kept.has(element.id());
          if (element.hasClass("crowded") !== isCrowded) element.toggleClass("crowded", isCrowded);
        }),
      );
    });
  }

  /** Has the words of what is pointed at, or else of the one that is chosen, be read, however small it is. */
  private name(pointed: cytoscape.SingularElementReturnValue | null): void {
    const chosen = this.core.elements(":selected");
    this.core.elements(".named").removeClass("named");
    if (pointed) pointed.addClass("named");
    else if (chosen.length === 1) chosen.addClass("named");
  }

  private beginDrag(event: cytoscape.EventObject): void {
    if (!this.isLinking || this.source !== null) return;
    this.source = String(event.target.data("name"));
    event.target.addClass("source");
    this.core.userPanningEnabled(false);
    const ghost = { group: "nodes" as const, data: { id: "ghost" }, position: { ...event.position }, classes: "ghost" };
    const line = {
      group: "edges" as const,
      data: { id: "ghost-line", source: event.target.id(), target: "ghost" },
      classes: "ghost",
    };
    this.core.add([ghost, line]);
  }

  private endDrag(): void {
    this.source = null;
    this.core.userPanningEnabled(true);
    this.core.elements(".ghost").remove();
    this.core.nodes(".source").removeClass("source");
  }

  private drop(at: Point): void {
    const from = this.source;
    if (from === null) return;
    const found = this.core.nodes("[name]").filter((node) => {
      const box = node.boundingBox({ includeLabels: false });
      return at.x >= box.x1 && at.x <= box.x2 && at.y >= box.y1 && at.y <= box.y2;
    });
    const to = found.length ? String(found[0]!.data("name")) : null;
    // Pressed and let go: the next one that is pressed is the other end.
    if (to === from) return;
    this.endDrag();
    if (to !== null) this.told.linked?.(from, to);
  }

  png(): Blob {
    return this.core.png({ output: "blob", full: true, scale: 2, bg: colour("surface") }) as unknown as Blob;
  }

  close(): void {
    this.sizes.disconnect();
    this.core.destroy();
  }

  private open(event: cytoscape.EventObject): void {
    const element = event.target as cytoscape.SingularElementReturnValue;
    const at = event.renderedPosition;
    this.told.opened?.(element.isNode() ? "node" : "link", String(element.data("name")), at);
  }

  private tellSelection(): void {
    const names = (selector: string) => this.core.elements(selector).map((one) => String(one.data("name")));
    this.told.selected?.(names("node:selected"), names("edge:selected"));
  }

  private tellPositions(): void {
    const found = new Map<string, Point>();
    this.core.nodes("[name]").forEach((node) => {
      found.set(String(node.data("name")), {
        x: Math.round(node.position("x")),
        y: Math.round(node.position("y")),
      });
    });
    this.told.moved?.(found);
  }
}

// Nodes and links may have the same names, and none is to look like a selector.
function key(group: "n" | "l", id: string): string {
  return `${group}:${id}`;
}
