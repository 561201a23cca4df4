// The map itself, below the drawing: land and a net of degrees, drawn anew whenever what is seen of it changes. The outlines
// are Natural Earth's (public domain, as the package world-atlas has them), fetched when there is a map to draw.
import type { Core } from "cytoscape";
import { colour } from "../state/theme.svelte";
import type { GroundMap } from "./map";

const NET_DEGREES = [30, 10, 5, 1];
const NET_LINES_MAX = 40;

let land: Promise<Path2D> | null = null;

/** All land, a unit being a degree, y upwards. */
async function fetchLand(): Promise<Path2D> {
  const [{ feature }, { default: atlas }] = await Promise.all([
    import("topojson-client"),
    import("world-atlas/land-110m.json"),
  ]);
  const path = new Path2D();
  const { features } = feature(atlas as never, "land") as unknown as GeoJSON.FeatureCollection<GeoJSON.MultiPolygon>;
  for (const ring of features.flatMap(({ geometry }) => geometry.coordinates.flat())) {
    ring.forEach(([x, y], n) => (n ? path.lineTo(x!, y!) : path.moveTo(x!, y!)));
    path.closePath();
  }
  return path;
}

export class Ground {
  private readonly canvas = document.createElement("canvas");
  private map: GroundMap | null = null;
  private path: Path2D | null = null;
  private readonly draw = () => this.paint();

  constructor(
    private readonly container: HTMLElement,
    private readonly core: Core,
  ) {
    this.canvas.setAttribute("aria-hidden", "true");
    this.canvas.className = "ground";
  }

  show(map: GroundMap | null): void {
    if (map && !this.map) {
      this.container.prepend(this.canvas);
      this.core.on("viewport resize", this.draw);
      void (land ??= fetchLand()).then((path) => {
        this.path = path;
        this.paint();
      });
    } else if (!map && this.map) {
      this.core.removeListener("viewport resize", this.draw);
      this.canvas.remove();
    }
    this.map = map;
    this.paint();
  }

  paint(): void {
    const { map, path, canvas } = this;
    const context = canvas.getContext("2d");
    if (!map || !path || !context) return;
    const [width, height] = [this.container.clientWidth, this.container.clientHeight];
    const sharp = devicePixelRatio;
    [canvas.width, canvas.height] = [Math.round(width * sharp), Math.round(height * sharp)];
    const zoom = this.core.zoom();
    const pan = this.core.pan();
    const [x, y] = [pan.x + zoom * map.x, pan.y + zoom * map.y];
    const [perLongitude, perLatitude] = [zoom * map.perLongitude, zoom * map.perLatitude];
    context.setTransform(sharp * perLongitude, 0, 0, -sharp * perLatitude, sharp * x, sharp * y);
    context.fillStyle = colour("sunken");
    context.fill(path);
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    context.strokeStyle = colour("line");
    context.lineWidth = 0.5;
    context.beginPath();
    const step = NET_DEGREES.findLast(
      (one) => Math.max(width / perLongitude, height / perLatitude) / one < NET_LINES_MAX,
    );
    for (const degrees of multiples(step ?? NET_DEGREES[0]!, -x / perLongitude, (width - x) / perLongitude, 180)) {
      context.moveTo(x + degrees * perLongitude, Math.max(0, y - 90 * perLatitude));
      context.lineTo(x + degrees * perLongitude, Math.min(height, y + 90 * perLatitude));
    }
    for (const degrees of multiples(step ?? NET_DEGREES[0]!, (y - height) / perLatitude, y / perLatitude, 90)) {
      context.moveTo(Math.max(0, x - 180 * perLongitude), y - degrees * perLatitude);
      context.lineTo(Math.min(width, x + 180 * perLongitude), y - degrees * perLatitude);
    }
    context.stroke();
  }
}

/** The multiples of a step that are seen, as far as there are any. */
function multiples(step: number, from: number, to: number, most: number): number[] {
  const first = Math.ceil(Math.max(from, -most) / step);
  const count = Math.floor(Math.min(to, most) / step) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, n) => (first + n) * step);
}
