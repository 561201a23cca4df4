import { describe, expect, it } from "vitest";
import { describeTemplate, fieldsOf, nameOf, nameTwice, stepsOf } from "../src/lab/fields";

describe("the fields that a lab says", () => {
  it("are told by their paths, with what is written there", () => {
    const text =
      "name: x\nlinks:\n  - {endpoints: [a, b], rate: 10Mbit} # narrow\ntime: {tdf: 5.0}\nnodes: {a: , b.c: {cpu: 1}}\n";
    expect([...fieldsOf(text)]).toEqual([
      ["name", "x"],
      ["links.0.endpoints.0", "a"],
      ["links.0.endpoints.1", "b"],
      ["links.0.rate", "10Mbit"],
      ["time.tdf", "5.0"],
    ]);
  });

  it("are a bounded number, and none of a text that is no YAML", () => {
    expect(fieldsOf(Array.from({ length: 1000 }, (_, n) => `f${n}: 1`).join("\n")).size).toBe(300);
    expect(fieldsOf("").size).toBe(0);
  });

  it("have numbers for places in lists", () => expect(stepsOf("links.0.rate")).toEqual(["links", 0, "rate"]));

  it("are kernel parameters too, whose names have points", () => {
    const path = "nodes.a.sysctls.net.ipv4.tcp_congestion_control";
    expect([...fieldsOf("nodes: {a: {sysctls: {net.ipv4.tcp_congestion_control: reno}}}")]).toEqual([[path, "reno"]]);
    expect(stepsOf(path)).toEqual(["nodes", "a", "sysctls", "net.ipv4.tcp_congestion_control"]);
  });
});

it("what a template says of itself cannot be broken out of", () => {
  const said = describeTemplate('a "title"\nparameters: {}', [
    { name: " rate ", field: "links.0.rate, links.1.rate", about: "}: [" },
    { name: "__proto__", field: "x", about: "" },
    { name: "", field: "nodes.a.tdf ", about: "" },
    { name: "z", field: "", about: "" },
  ]);
  const read = JSON.parse(said);
  expect(read.title).toBe('a "title"\nparameters: {}');
  expect(read.parameters.rate).toEqual({ fields: ["links.0.rate", "links.1.rate"], about: "}: [" });
  expect(Object.keys(read.parameters)).toEqual(["rate", "__proto__", "tdf"]);
});

it("a parameter is called as the last word of its field unless somebody says it, and no two the same", () => {
  const of = (name: string, field: string) => ({ name, field, about: "" });
  expect([of("", "links.1.rate"), of(" narrow ", "links.1.rate"), of("", "")].map(nameOf)).toEqual([
    "rate",
    "narrow",
    "",
  ]);
  expect(nameTwice([of("", "links.0.rate"), of("", "links.1.rate")])).toBe("rate");
  expect(nameTwice([of("", "links.0.rate"), of("narrow", "links.1.rate"), of("", ""), of("", "")])).toBeUndefined();
});
