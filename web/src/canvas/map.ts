// A map under a drawing: places on earth as points of the canvas, and the other way round. Pure. Degrees of longitude are as
// wide as they are in the middle of the network, so that what is drawn looks as it does on a globe seen from above.
import type { Spot, Spots } from "../lab/history";

/** Longitude and latitude in degrees, by the names of nodes. */
export type Places = Readonly<Record<string, readonly [number, number]>>;

/** Where longitude 0 and latitude 0 are on the canvas, and how far a degree is; y is downwards. */
export interface GroundMap {
  x: number;
  y: number;
  perLongitude: number;
  perLatitude: number;
}

const STEP = 110;

/** The map on which a network is drawn; null: it has no places that are apart. */
export function mapOf(places: Places): GroundMap | null {
  const all = Object.values(places);
  const [longitudes, latitudes] = [all.map((one) => one[0]), all.map((one) => one[1])];
  const middle = latitudes.reduce((sum, one) => sum + one, 0) / (all.length || 1);
  const narrowed = Math.max(Math.cos((middle * Math.PI) / 180), 0.1);
  const [left, top] = [least(longitudes), -least(latitudes.map((one) => -one))];
  const extent = Math.max((-least(longitudes.map((one) => -one)) - left) * narrowed, top - least(latitudes));
  if (!(extent > 0) || !Number.isFinite(extent)) return null;
  const perLatitude = (2.5 * STEP * Math.sqrt(all.length)) / extent;
  const perLongitude = perLatitude * narrowed;
  return { x: -left * perLongitude, y: top * perLatitude, perLongitude, perLatitude };
}

function least(values: readonly number[]): number {
  return values.reduce((a, b) => Math.min(a, b), Infinity);
}

function spotOn(map: GroundMap, [longitude, latitude]: readonly [number, number]): Spot {
  return [Math.round(map.x + longitude * map.perLongitude), Math.round(map.y - latitude * map.perLatitude)];
}

/** The nodes of a network where they are on its map. */
export function spotsOn(map: GroundMap, places: Places): Spots {
  return Object.fromEntries(Object.entries(places).map(([node, place]) => [node, spotOn(map, place)]));
}

/** The map that is under a drawing: that of the network, as long as half of its nodes are where the map has them; somebody
 * may have moved some. */
export function mapUnder(positions: Spots, places: Places): GroundMap | null {
  const map = mapOf(places);
  if (!map) return null;
  const names = Object.keys(places).filter((node) => Object.hasOwn(positions, node));
  const there = names.filter((node) => {
    const [[x, y], [u, v]] = [positions[node]!, spotOn(map, places[node]!)];
    return Math.abs(x - u) <= 1 && Math.abs(y - v) <= 1;
  });
  return there.length > 0 && 2 * there.length >= names.length ? map : null;
}
