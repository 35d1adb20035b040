import { describe, expect, it } from "vitest";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { caseFiles, readJson, readText } from "../cases/files.ts";
import { framesOf, readFrames } from "../reader/frames.ts";
import { bodySchemas } from "./check-answer.ts";
import { frameSchemas, problemOf } from "./check-stream.ts";

type Member = readonly string[];

/** Members without which a body or a frame is another one that is as good: what laws of a whole stream are for. */
const optional: Readonly<Record<WireFormatName, readonly string[]>> = {
  "chat-completions": [
    "choices.0.message.reasoning_content",
    "choices.0.message.tool_calls",
    // Then it is a chunk of text, and belongs behind the one with the role.
    "choices.0.delta.role",
    // Null where usage was asked for: then it is a chunk of a stream that was not.
    "usage",
  ],
  responses: ["encrypted_content", "namespace"]
    .flatMap((name) => [
      `item.${name}`,
      `output.0.${name}`,
      `output.1.${name}`,
      `response.output.0.${name}`,
      `response.output.1.${name}`,
    ])
    .concat("item.content"),
  messages: [],
};

/** What the client or the model wrote itself. */
const free = /(?:^|\.)(?:metadata|tools|tool_choice|content\.\d+\.input)\./u;

const samples = (["chat-completions", "responses", "messages"] as const).map((format) => ({
  format,
  bodies: bodiesOf(format),
  frames: differentFramesOf(format),
}));

describe.each(samples)("the schemas of $format", ({ format, bodies, frames }) => {
  const bodySchema = bodySchemas[format];
  const frameSchema = frameSchemas[format];

  it("let the golden bodies and frames through", () => {
    expect(bodies.length).toBeGreaterThan(10);
    expect(bodies.flatMap((body) => problemOf(bodySchema, body) ?? [])).toEqual([]);
    expect(frames.flatMap((frame) => problemOf(frameSchema, frame) ?? [])).toEqual([]);
  });

  it("catch every field that is missing", () => {
    const missed = new Set([
      ...missedChanges(bodies, (body) => problemOf(bodySchema, body), without),
      ...missedChanges(frames, (frame) => problemOf(frameSchema, frame), without),
    ]);
    expect([...missed].filter((path) => !optional[format].includes(path))).toEqual([]);
  });

  it("catch every field that has another name, and every one too many", () => {
    for (const change of [renamed, doubled]) {
      expect(missedChanges(bodies, (body) => problemOf(bodySchema, body), change)).toEqual([]);
      expect(missedChanges(frames, (frame) => problemOf(frameSchema, frame), change)).toEqual([]);
    }
  });
});

it.each([
  ["chat-completions", "usage", "usage: Invalid input: expected object, received undefined"],
  ["responses", "usage", "usage: Invalid input: expected object, received undefined"],
  ["messages", "usage", "usage: Invalid input: expected object, received undefined"],
  ["messages", "stop_reason", "stop_reason: not one of the values that the schema knows"],
] as const)("of a %s body without %s it is said where it is missing", (format, field, problem) => {
  const body = structuredClone(bodiesOf(format)[0]);
  without(body as Record<string, unknown>, field);
  expect(problemOf(bodySchemas[format], body)).toBe(problem);
});

function bodiesOf(format: WireFormatName): readonly unknown[] {
  return caseFiles("generations")
    .filter((file) => file.kind === "body" && file.format === format)
    .map(readJson);
}

/** One frame of each outline among the golden frames. */
function differentFramesOf(format: WireFormatName): readonly unknown[] {
  const byOutline = new Map<string, unknown>();
  for (const file of caseFiles("generations")) {
    if (file.kind !== "stream" || file.format !== format) continue;
    for (const { data } of framesOf(readFrames(readText(file)))) {
      if (data === "[DONE]") continue;
      const frame: unknown = JSON.parse(data);
      const type = (frame as { readonly type?: unknown }).type;
      byOutline.set(JSON.stringify([type, membersOf(frame)]), frame);
    }
  }
  return [...byOutline.values()];
}

/** The paths of members whose change goes unnoticed. */
function missedChanges(
  values: readonly unknown[],
  problemOfValue: (value: unknown) => string | null,
  change: (owner: Record<string, unknown>, name: string) => void,
): readonly string[] {
  const missed = new Set<string>();
  for (const value of values) {
    for (const member of membersOf(value)) {
      const path = member.join(".");
      if (free.test(path) || missed.has(path)) continue;
      const changed = structuredClone(value);
      change(ownerOf(changed, member), member.at(-1) ?? "");
      if (problemOfValue(changed) === null) missed.add(path);
    }
  }
  return [...missed];
}

function membersOf(value: unknown, path: Member = []): readonly Member[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const here = [...path, name];
    return [...(Array.isArray(value) ? [] : [here]), ...membersOf(member, here)];
  });
}

function ownerOf(value: unknown, member: Member): Record<string, unknown> {
  let owner = value as Record<string, unknown>;
  for (const name of member.slice(0, -1)) owner = owner[name] as Record<string, unknown>;
  return owner;
}

function without(owner: Record<string, unknown>, name: string): void {
  Reflect.deleteProperty(owner, name);
}

function renamed(owner: Record<string, unknown>, name: string): void {
  doubled(owner, name);
  without(owner, name);
}

function doubled(owner: Record<string, unknown>, name: string): void {
  owner[`${name}s`] = owner[name];
}
