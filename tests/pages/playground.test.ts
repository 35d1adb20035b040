import { describe, expect, test } from "vitest";
import { addEvent, type Answer, noAnswer, readBody } from "../../console/src/playground/answer.ts";
import { bodyOf, type Question, readTools } from "../../console/src/playground/ask.ts";
import { dataOf, openFrames } from "../../console/src/frames.ts";
import { linesOf } from "../../console/src/playground/lines.ts";
import { caseFiles, readText } from "../cases/files.ts";

// What the playground makes of an answer, on the answers of all cases.

const formats = ["chat-completions", "responses", "messages"] as const;

describe.each(formats)("%s", (format) => {
  const files = caseFiles("generations").filter((file) => file.format === format);
  const streams = files.filter(({ kind }) => kind === "stream");

  test("an answer reads the same streamed and whole", () => {
    expect(streams.length).toBeGreaterThan(10);
    for (const stream of streams) {
      const whole = files.find(({ caseId, kind }) => caseId === stream.caseId && kind === "body");
      // A whole message mends the arguments of a call that was cut, as they are a value there.
      if (whole === undefined || stream.caseId.includes("cut")) continue;
      const split = openFrames();
      const folded = split(readText(stream)).reduce(
        (answer, frame) => addEvent(format, answer, dataOf(frame) ?? ""),
        noAnswer,
      );
      const body = readBody(format, readText(whole));
      expect(comparable(folded), stream.caseId).toEqual(comparable(body));
      // Chat Completions streams have their usage only where it was asked for.
      if (folded.outputTokens !== null) expect(folded.outputTokens).toBe(body.outputTokens);
    }
  });
});

function comparable({ calls, error, reasoning, text }: Answer): object {
  const said = calls.map(({ arguments: given, name }) => [name, comparableArguments(given)]);
  return { calls: said, error, reasoning, text };
}

/** Messages has arguments as a value, and streams none where there are none. */
function comparableArguments(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text) as unknown;
  } catch {
    return text;
  }
}

test("frames are the same however their bytes are cut", () => {
  const text = "data: a\n\nevent: x\ndata: b\r\n\r\ndata: [DONE]\n\n";
  for (let cut = 0; cut <= text.length; cut += 1) {
    const split = openFrames();
    const frames = [...split(text.slice(0, cut)), ...split(text.slice(cut))];
    expect(frames.map(dataOf)).toEqual(["a", "b", null]);
  }
});

const question: Question = {
  format: "messages",
  system: "Be short.",
  text: "It's 5 o'clock",
  streamed: true,
  outputTokensMax: "",
  tools: "",
};

test("tools are checked before they are sent", () => {
  expect(readTools("  ")).toEqual([]);
  expect(readTools('[{"name":"a"}]')).toEqual([{ name: "a" }]);
  expect(readTools("{")).toContain("is no JSON");
  expect(readTools("{}")).toContain("is no list");
  expect(readTools('[{"title":"a"}]')).toContain("without a name");
});

test("a line for a shell is one command, whatever the question has in it", () => {
  const order = { format: question.format, body: bodyOf(question, []), url: "http://h", key: "" };
  const [curl] = linesOf(order);
  expect(curl?.text).toContain(String.raw`It'\''s 5 o'\''clock`);
  expect(curl?.text).toContain("x-api-key: YOUR_KEY");
});
