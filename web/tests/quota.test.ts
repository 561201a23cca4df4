import { expect, test } from "vitest";
import { askedQuota, BOUNDS } from "../src/run/quota";

test("what a quota says is written as it can be asked for, to the byte", () => {
  const written = (told: string, value: number) => BOUNDS.find((one) => one.told === told)!.written(value);
  expect(written("memory_bytes", 4 * 2 ** 30)).toBe("4GiB");
  expect(written("memory_bytes", 1536 * 2 ** 20)).toBe("1536MiB");
  expect(written("disk_bytes", 10e9)).toBe("10GB");
  expect(written("disk_bytes", 1234567)).toBe("1234567B");
  expect(written("saved_bytes", 0)).toBe("0B");
  expect(written("host_s", 90)).toBe("90s");
});

test("an empty field is no bound, and one that is no number is asked for as it is", () => {
  expect(askedQuota({ at_once: " 2 ", cores: "many", memory: " 4GiB ", disk: "", host_time: "1h" })).toEqual({
    at_once: 2,
    cores: "many",
    memory: "4GiB",
    host_time: "1h",
  });
});
