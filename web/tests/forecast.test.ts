import { expect, test } from "vitest";
import { forecastWords } from "../src/run/forecast";
import { en } from "../src/words/en";

const nothing = { virtual_s: null, is_earliest: false, host_s: null, hint: "", link: "", load: 0, tdf: null };
const said = (more: Partial<typeof nothing> | Record<string, unknown>) =>
  forecastWords({ ...nothing, ...more }, en.forecast);

test("what can be told of a run is told, as exactly as it is known, and nothing else", () => {
  expect(said({})).toBe("TDF as needed");
  expect(said({ virtual_s: 20, host_s: 12.3, tdf: 1 })).toBe("20 s · about 12 s here · TDF 1");
  expect(said({ virtual_s: 0.5, is_earliest: true, tdf: 0.5 })).toBe("0.5 s or more · TDF 0.5");
  expect(said({ host_s: 3.4 })).toContain("about 3 s here");
  expect(said({ host_s: 600 })).toContain("about 10 min here");
  expect(said({ host_s: 8000 })).toContain("about 2.2 h here");
});
