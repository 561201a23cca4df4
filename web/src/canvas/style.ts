// How a drawing looks: shapes and colours of nodes and links, and how large their words are.
import type { Core, EdgeSingular, NodeSingular, StylesheetJson } from "cytoscape";
import { colour } from "../state/theme.svelte";
import type { Disc, Label } from "./labels";

const SHAPES = {
  host: "round-rectangle",
  router: "ellipse",
  nat: "ellipse",
  switch: "round-hexagon",
  ovs: "round-hexagon",
  controller: "round-diamond",
} as const;

/** How much larger labels are drawn where all else is drawn smaller, so that they can be read; in few steps, as styling takes time. */
export function labelScale(zoom: number): number {
  return Math.round(4 * Math.min(3, Math.max(1, 1 / zoom))) / 4;
}

const NODE_SIZE = 34;
const NODE_WORDS = 12;
const NODE_WORDS_BELOW = 5;
const NODE_WORDS_LEAST = 7;
const NAMED_WORDS = 14;
const LINK_WORDS = 11;
const LINK_WORDS_ASIDE = 13;
const LINK_WORDS_LEAST = 8;
/** How high a line is, beside its letters. */
const LINE = 1.2;
const FONT = "system-ui, sans-serif";

const measuring = new OffscreenCanvas(1, 1).getContext("2d")!;

export function style(zoom: number): StylesheetJson {
  const text = colour("text");
  const scale = labelScale(zoom);
  return [
    {
      selector: "node",
      style: {
        shape: (node: NodeSingular) => SHAPES[node.data("kind") as keyof typeof SHAPES] ?? "round-rectangle",
        width: NODE_SIZE,
        height: NODE_SIZE,
        "background-color": colour("surface"),
        "border-width": 2,
        "border-color": colour("muted"),
        label: "data(label)",
        "text-valign": "bottom",
        "text-margin-y": NODE_WORDS_BELOW,
        "font-size": NODE_WORDS * scale,
        "font-family": FONT,
        color: text,
        "text-background-color": colour("surface"),
        "text-background-opacity": 0.8,
        "min-zoomed-font-size": NODE_WORDS_LEAST,
      },
    },
    { selector: "node[kind = 'router'], node[kind = 'nat']", style: { "background-color": colour("accent-soft") } },
    { selector: "node[kind = 'switch'], node[kind = 'ovs']", style: { "background-color": colour("sunken") } },
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
        "font-size": LINK_WORDS * scale,
        "font-family": FONT,
        color: text,
        "text-rotation": "autorotate",
        "text-margin-y": -LINK_WORDS_ASIDE * scale,
        "min-zoomed-font-size": LINK_WORDS_LEAST,
      },
    },
    { selector: "edge[state = 'down']", style: { "line-style": "dashed", "line-color": colour("bad") } },
    { selector: "edge[state = 'wrong']", style: { "line-color": colour("bad") } },
    {
      selector: ":selected",
      style: { "overlay-color": colour("accent"), "overlay-opacity": 0.22, "overlay-padding": 6 },
    },
    { selector: ".crowded", style: { "text-opacity": 0, "text-background-opacity": 0 } },
    {
      selector: ".named",
      style: {
        "text-opacity": 1,
        "text-background-opacity": 1,
        "min-zoomed-font-size": 0,
        // As large on the screen as words of this page are, however small the rest is.
        "font-size": (element: NodeSingular | EdgeSingular) =>
          Math.max(NODE_WORDS * scale, NAMED_WORDS / element.cy().zoom()),
        "font-weight": 600,
        "z-index": 10,
      },
    },
    { selector: ".source", style: { "border-color": colour("accent"), "border-width": 4 } },
    { selector: "node.ghost", style: { width: 4, height: 4, "border-width": 0, label: "", events: "no" } },
    {
      selector: "edge.ghost",
      style: { width: 2, "line-color": colour("accent"), "line-style": "dashed", label: "", events: "no" },
    },
  ] as unknown as StylesheetJson;
}

/** Where nodes are on the screen. */
export function discsOf(core: Core): Disc[] {
  const radius = (NODE_SIZE / 2) * core.zoom();
  return core.nodes("[name]").map((node) => ({ ...node.renderedPosition(), radius }));
}

/**
 * The words of a drawing that are large enough to be read, from the most important to the least: of what is chosen, of nodes,
 * those with many links first, and of links.
 */
export function wordsOf(core: Core): Label[] {
  const zoom = core.zoom();
  const scale = labelScale(zoom) * zoom;
  const words: Label[] = [];
  if (NODE_WORDS * scale >= NODE_WORDS_LEAST) {
    const nodes = (core.nodes("[?label]").toArray() as NodeSingular[]).sort(
      (a, b) => b.degree(false) - a.degree(false),
    );
    words.push(...nodes.map((node) => wordsOfNode(node, zoom, NODE_WORDS * scale)));
  }
  if (LINK_WORDS * scale >= LINK_WORDS_LEAST)
    words.push(...(core.edges("[?label]").toArray() as EdgeSingular[]).map((edge) => wordsOfLink(edge, scale)));
  const chosen = new Set(core.elements(":selected").map((one) => one.id()));
  return words.sort((a, b) => Number(chosen.has(b.id)) - Number(chosen.has(a.id)));
}

function wordsOfNode(node: NodeSingular, zoom: number, size: number): Label {
  const { x, y } = node.renderedPosition();
  const height = LINE * size;
  const below = (NODE_SIZE / 2 + NODE_WORDS_BELOW) * zoom + height / 2;
  return { id: node.id(), x, y: y + below, width: widthOf(node.data("label"), size), height, angle: 0 };
}

function wordsOfLink(edge: EdgeSingular, scale: number): Label {
  const [from, to] = [edge.source().renderedPosition(), edge.target().renderedPosition()];
  const middle = edge.renderedMidpoint();
  // Words are never upside down, and are above their link.
  const angle = Math.atan((to.y - from.y) / (to.x - from.x || Number.EPSILON));
  const aside = LINK_WORDS_ASIDE * scale;
  const size = LINK_WORDS * scale;
  return {
    id: edge.id(),
    x: middle.x + aside * Math.sin(angle),
    y: middle.y - aside * Math.cos(angle),
    width: widthOf(edge.data("label"), size),
    height: LINE * size,
    angle,
  };
}

function widthOf(words: string, size: number): number {
  measuring.font = `${size}px ${FONT}`;
  return measuring.measureText(words).width;
}
