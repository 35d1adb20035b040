import { describe, expect, it } from "vitest";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { caseFiles, readText } from "../cases/files.ts";
import { plainRequest, readSteps, streamOf } from "../cases/generations.ts";
import { openStreamCheck } from "./check-stream.ts";

const formats = ["chat-completions", "responses", "messages"] as const;
const answer = readSteps("answer-call");

function problemsOf(
  format: WireFormatName,
  pieces: readonly string[],
  usageAsked: boolean | null = null,
): readonly string[] {
  const problems: string[] = [];
  const check = openStreamCheck({ format, usageAsked, report: (text) => problems.push(text) });
  for (const piece of pieces) check.write(piece);
  check.end();
  return problems;
}

describe.each(formats)("a stream of %s", (format) => {
  const frames = streamOf(format, plainRequest(format), answer).split(/(?<=\n\n)/u);

  it("is fine however it is cut", () => {
    const whole = frames.join("");
    for (const length of [1, 2, 3, 7, 64, whole.length]) {
      const pieces = whole.match(new RegExp(`[^]{1,${String(length)}}`, "gu")) ?? [];
      expect(problemsOf(format, pieces)).toEqual([]);
    }
  });

  it("is fine in every golden file", () => {
    for (const file of caseFiles("generations")) {
      if (file.kind !== "stream" || file.format !== format) continue;
      expect(problemsOf(format, [readText(file)]), file.name).toEqual([]);
    }
  });

  it("is not without its first frame, without its last, or with its last twice", () => {
    expect(problemsOf(format, frames.slice(1))).not.toEqual([]);
    expect(problemsOf(format, frames.slice(0, -1))).toHaveLength(1);
    expect(problemsOf(format, [...frames, frames.at(-1) ?? ""])).toHaveLength(1);
    expect(problemsOf(format, [])).toHaveLength(1);
  });

  it("is not in the middle of a frame, nor with a comment that says something", () => {
    expect(problemsOf(format, [frames.join(""), "data: {"])).toHaveLength(1);
    expect(problemsOf(format, [": hello\n\n", ...frames])).toEqual(["a comment: hello"]);
  });
});

describe("usage of a Chat Completions stream", () => {
  const request = { stream_options: undefined };
  const told = streamOf("chat-completions", plainRequest("chat-completions"), answer);
  const untold = streamOf("chat-completions", plainRequest("chat-completions", request), answer);
  const withoutChunk = told
    .split(/(?<=\n\n)/u)
    .filter((frame) => !frame.includes("prompt_tokens"))
    .join("");

  it("is there when it was asked for, and only then", () => {
    expect(problemsOf("chat-completions", [told], true)).toEqual([]);
    expect(problemsOf("chat-completions", [untold], false)).toEqual([]);
    expect(problemsOf("chat-completions", [told], false).length).toBeGreaterThan(1);
    expect(problemsOf("chat-completions", [untold], true)).toContain(
      "no chunk with the usage asked for",
    );
  });

  it("is missed also by those who do not know what was asked", () => {
    expect(problemsOf("chat-completions", [withoutChunk])).toEqual([
      "no chunk with the usage asked for",
    ]);
    const halfTold = untold.replace(
      '"finish_reason":null}]}',
      '"finish_reason":null}],"usage":null}',
    );
    expect(problemsOf("chat-completions", [halfTold]).length).toBeGreaterThan(0);
  });
});

it("numbers of Responses frames have no gaps", () => {
  const whole = streamOf("responses", plainRequest("responses"), answer);
  expect(
    problemsOf("responses", [whole.replace('"sequence_number":3}', '"sequence_number":4}')]),
  ).toEqual([expect.stringMatching(/^frame 3: it is not number 3: /u)]);
  expect(problemsOf("responses", [whole.replace(',"sequence_number":3}', "}")])).toEqual([
    expect.stringMatching(/^frame 3: sequence_number: .*received undefined: /u),
  ]);
});

it("100,000 frames are looked at in two seconds", () => {
  const [first = "", , third = ""] = streamOf(
    "chat-completions",
    plainRequest("chat-completions"),
    readSteps("answer-text"),
  ).split(/(?<=\n\n)/u);
  const problems: string[] = [];
  const check = openStreamCheck({
    format: "chat-completions",
    usageAsked: null,
    report: (text) => problems.push(text),
  });
  check.write(first);
  const { user } = process.cpuUsage();
  for (let count = 0; count < 100_000; count += 1) check.write(third);
  expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(2_000);
  expect(problems).toEqual([]);
});
