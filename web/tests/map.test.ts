import { expect, test } from "vitest";
import { mapOf, mapUnder, spotsOn } from "../src/canvas/map";

const PLACES = { oslo: [10.7, 59.9], wien: [16.4, 48.2], __proto__x: [-3.7, 40.4] } as const;

test("nodes are on the map where they are on earth, north above, and as far apart as they are", () => {
  const map = mapOf(PLACES)!;
  const spots = spotsOn(map, PLACES);
  expect(spots["oslo"]![1]).toBeLessThan(spots["wien"]![1]);
  expect(spots["__proto__x"]![0]).toBeLessThan(spots["oslo"]![0]);
  // A degree of longitude is as wide as it is in the middle of them.
  expect(map.perLongitude / map.perLatitude).toBeCloseTo(Math.cos((((59.9 + 48.2 + 40.4) / 3) * Math.PI) / 180), 6);
  expect(Math.min(...Object.values(spots).map(([x]) => x))).toBe(0);
  expect(Math.min(...Object.values(spots).map(([, y]) => y))).toBe(0);
});

test("a map is under what is drawn on it, also when somebody has moved a node, and not under another arrangement", () => {
  const spots = spotsOn(mapOf(PLACES)!, PLACES);
  expect(mapUnder(spots, PLACES)).toEqual(mapOf(PLACES));
  expect(mapUnder({ ...spots, wien: [900, 900], other: [1, 2] }, PLACES)).toEqual(mapOf(PLACES));
  expect(mapUnder({ oslo: [1, 2], wien: [3, 4], __proto__x: [5, 6] }, PLACES)).toBeNull();
  expect(mapUnder({}, PLACES)).toBeNull();
});

test("where nothing is apart there is no map", () => {
  expect(mapOf({})).toBeNull();
  expect(mapOf({ a: [1, 2], b: [1, 2] })).toBeNull();
});
