// The canvas, behind a small adapter: cytoscape.js draws, others say what. What is drawn is compared with what is there,
// so that only what has changed is touched.
import cytoscape, { type Core, type ElementDefinition, type StylesheetJson } from "cytoscape";
import { colour } from "../state/theme.svelte";
import type { Point } from "./layouts";

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

const SHAPES = { host: "round-rectangle", router: "ellipse", switch: "round-hexagon" } as const;

function style(): StylesheetJson {
  const text = colour("text");
  return [
    {
      selector: "node",
      style: {
        shape: (node: cytoscape.NodeSingular) => SHAPES[node.data("kind") as keyof typeof SHAPES] ?? "round-rectangle",
        width: 34,
        height: 34,
        "background-color": colour("surface"),
        "border-width": 2,
        "border-color": colour("muted"),
        label: "data(label)",
        "text-valign": "bottom",
        "text-margin-y": 5,
        "font-size": 12,
        "font-family": "system-ui, sans-serif",
        color: text,
        "min-zoomed-font-size": 7,
      },
    },
    { selector: "node[kind = 'router']", style: { "background-color": colour("accent-soft") } },
    { selector: "node[kind = 'switch']", style: { "background-color": colour("sunken") } },
    {
      selector: "node[state = 'ready'], node[state = 'running']",
      style: { "border-color": colour("good"), "border-width": 3 },
    },
    {
      selector: "node[state = 'failed'], node[state = 'wrong']",
      style: { "border-color": colour("bad"), "border-width": 3 },
    },
    {
      selector: "node[state = 'fault']",
      style: { "border-color": colour("warn"), "border-style": "double", "border-width": 5 },
    },
    {
      selector: "edge",
      style: {
        width: "data(width)",
        "line-color": "data(colour)",
        "curve-style": "bezier",
        label: "data(label)",
        "font-size": 11,
        color: text,
        "text-rotation": "autorotate",
        "text-margin-y": -13,
        "min-zoomed-font-size": 8,
      },
    },
    { selector: "edge[state = 'down']", style: { "line-style": "dashed", "line-color": colour("bad") } },
    { selector: "edge[state = 'wrong']", style: { "line-color": colour("bad") } },
    {
      selector: ":selected",
      style: { "overlay-color": colour("accent"), "overlay-opacity": 0.22, "overlay-padding": 6 },
    },
    { selector: ".source", style: { "border-color": colour("accent"), "border-width": 4 } },
    // While many elements move, what takes time to draw is left out.
  ] as unknown as StylesheetJson;
}

export class Graph {
  private readonly core: Core;
  private source: string | null = null;
  private isFitted = false;
  private isTelling = true;

  constructor(
    private readonly container: HTMLElement,
    private readonly told: Told = {},
    options: { isFixed?: boolean } = {},
  ) {
    standIn();
    this.core = cytoscape({
      container,
      style: style(),
      minZoom: 0.05,
      maxZoom: 4,
      boxSelectionEnabled: true,
      autoungrabify: options.isFixed ?? false,
      hideEdgesOnViewport: false,
      textureOnViewport: false,
      pixelRatio: "auto",
    });
    this.core.on("select unselect", () => this.isTelling && this.tellSelection());
    this.core.on("dragfree", "node", () => this.tellPositions());
    this.core.on("cxttap", "node, edge", (event) => this.open(event));
    this.core.on("dbltap", "node, edge", (event) => this.open(event));
    this.core.on("tap", (event) => {
      const shifted = (event.originalEvent as MouseEvent | undefined)?.shiftKey;
      if (event.target === this.core && shifted) told.placed?.(event.position);
    });
    this.core.on("dbltap", (event) => event.target === this.core && told.placed?.(event.position));
    this.core.on("tap", "node", (event) => this.endLink(event.target.id()));
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
        if (!now || isOther) element.remove();
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
    if (!this.isFitted && drawing.nodes.length) this.fit();
  }

  fit(): void {
    this.isFitted = true;
    this.core.resize();
    this.core.fit(undefined, 48);
    if (this.core.zoom() > 1.4) {
      this.core.zoom(1.4);
      this.core.center();
    }
  }

  restyle(): void {
    this.core.style(style());
  }

  resize(): void {
    this.core.resize();
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
    if (found.length) this.core.animate({ center: { eles: found } }, { duration: 150 });
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

  /** The next node that is pressed is the other end of a link from this one. */
  beginLink(from: string): void {
    this.cancelLink();
    this.source = from;
    this.core.getElementById(key("n", from)).addClass("source");
  }

  cancelLink(): void {
    this.source = null;
    this.core.nodes(".source").removeClass("source");
  }

  png(): Blob {
    return this.core.png({ output: "blob", full: true, scale: 2, bg: colour("surface") }) as unknown as Blob;
  }

  close(): void {
    this.core.destroy();
  }

  private endLink(to: string): void {
    const from = this.source;
    if (from === null || key("n", from) === to) return;
    this.cancelLink();
    this.told.linked?.(from, to.slice(2));
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
    this.core.nodes().forEach((node) => {
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
