import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutAt, readAnswer } from "./read-answer.ts";

const folder = join(import.meta.dirname, "../../cases/upstream");

const cases = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".sse"))
  .map((path) => path.slice(0, -".sse".length))
  .toSorted();

function load(name: string): { readonly bytes: Buffer; readonly expected: object } {
  return {
    bytes: readFileSync(join(folder, `${name}.sse`)),
    expected: JSON.parse(readFileSync(join(folder, `${name}.expected.json`), "utf8")),
  };
}

test("there are cases of every engine", () => {
  const engines = new Set(cases.map((name) => name.split("/")[0]));
  expect([...engines]).toEqual(["generic", "llama-cpp", "ollama", "sglang", "vllm"]);
});

describe.each(cases)("%s", (name) => {
  const { bytes, expected } = load(name);

  test("gives the expected events and ending", () => {
    const { events, ending } = readAnswer([bytes]);
    expect({ events, ending }).toEqual(expected);
  });

  test("gives the same whatever way the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 20 }), (cuts) => {
        const { events, ending } = readAnswer(cutAt(bytes, cuts));
        expect({ events, ending }).toEqual(expected);
      }),
      { numRuns: 40 },
    );
    const { events, ending } = readAnswer([...bytes].map((byte) => Uint8Array.of(byte)));
    expect({ events, ending }).toEqual(expected);
  });
});

test("running usage comes with the events of its read, the last usage with the ending", () => {
  const { bytes } = load("vllm/length-vllm-0.32.0");
  const frames = bytes.toString("utf8").split(/(?<=\n\n)/u);
  const { running } = readAnswer(frames.map((frame) => Buffer.from(frame)));
  expect(running.map((usage) => usage?.outputTokens)).toEqual([1, 2, 3, 4, 5, 6]);
});

test("a call that waits is passed on in the read in which the one before it becomes whole", () => {
  const { bytes } = load("generic/interleaved-calls-by-hand");
  const frames = bytes.toString("utf8").split(/(?<=\n\n)/u);
  const whole = frames.findIndex((frame) => frame.includes(String.raw`"arguments":"\"}"`));
  const { events } = readAnswer(frames.slice(0, whole + 1).map((frame) => Buffer.from(frame)));
  const starts = events.filter((event) => event.type === "tool-call-start");
  expect(starts.map((event) => event.id)).toEqual(["c0", "c1", "c2"]);
});
