import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { RecordedRequest, Step } from "../doubles/scripted-deployment.ts";
import { freshWord, noteText, TaskScript } from "./script.ts";

const path = "/tmp/note.txt";
const tool = (name: string, ...required: readonly string[]) => ({
  type: "function",
  function: {
    name,
    parameters: {
      type: "object",
      properties: Object.fromEntries(required.map((field) => [field, { type: "string" }])),
      required,
    },
  },
});
const tools = [
  tool("Read", "file_path"),
  tool("Bash", "command", "description"),
  tool("Edit", "file_path", "old_string", "new_string"),
];

function requestOf(
  script: TaskScript,
  results: readonly string[],
  offered = tools,
): RecordedRequest {
  const messages = [
    { role: "user", content: script.prompt },
    ...results.map((content) => ({ role: "tool", tool_call_id: "call", content })),
  ];
  const json = { messages, tools: offered };
  return {
    path: "/v1/chat/completions",
    headers: {},
    body: JSON.stringify(json),
    json,
    requestOfConnection: 1,
    atMs: 0,
    bytesWritten: 0,
    ended: Promise.resolve({ byPeer: false, atMs: 0 }),
  };
}

/** The name, arguments and text that the steps of a streamed answer amount to. */
function readSteps(steps: readonly Step[]): { name: string; arguments: string; text: string } {
  const read = { name: "", arguments: "", text: "" };
  for (const step of steps) {
    if (step.type !== "write" || !String(step.bytes).startsWith("data: {")) continue;
    const chunk = JSON.parse(String(step.bytes).slice("data: ".length));
    const { delta } = chunk.choices[0] ?? {};
    read.text += delta?.content ?? "";
    read.name += delta?.tool_calls?.[0].function.name ?? "";
    read.arguments += delta?.tool_calls?.[0].function.arguments ?? "";
  }
  return read;
}

describe("the task's script", () => {
  const word = freshWord();
  const results = [
    `1\t${noteText(word, false)}`,
    `${hash("sha256", word)}  -`,
    "The file was updated.",
  ];

  it("is played with the tools that are offered, the word taken from the file's tool result", () => {
    const script = new TaskScript({ asksForTitle: false, path });
    const calls = [0, 1, 2].map((count) =>
      readSteps(script.answer(requestOf(script, results.slice(0, count)))),
    );
    expect(calls.map(({ name }) => name)).toEqual(["Read", "Bash", "Edit"]);
    expect(JSON.parse(calls[0]?.arguments ?? "")).toEqual({ file_path: path });
    expect(JSON.parse(calls[1]?.arguments ?? "").command).toContain(word);
    expect(JSON.parse(calls[2]?.arguments ?? "").new_string).toBe(`Status: done, ${word}`);
    expect(readSteps(script.answer(requestOf(script, results))).text).toContain(word);
    expect(script.problems).toEqual([]);
  });

  it("goes through the shell where that is all there is", () => {
    const script = new TaskScript({ asksForTitle: false, path });
    const shell = [tool("exec_command", "cmd")];
    expect(readSteps(script.answer(requestOf(script, [], shell)))).toMatchObject({
      name: "exec_command",
      arguments: JSON.stringify({ cmd: `cat ${path}` }),
    });
  });

  it.each([
    { what: "a result without the word", given: [[], ["nothing"]] },
    { what: "a request that is repeated", given: [[], []] },
    {
      what: "a command that was not run",
      given: [[], results.slice(0, 1), [results[0] ?? "", "done"]],
    },
    { what: "a result that got lost", given: [[], results.slice(0, 1), results.slice(0, 1)] },
  ])("notes $what", ({ given }) => {
    const script = new TaskScript({ asksForTitle: false, path });
    const last = given.map((seen) => script.answer(requestOf(script, seen))).at(-1);
    expect(script.problems).toHaveLength(1);
    expect(last?.[0]).toMatchObject({ type: "headers", status: 400 });
  });

  it("notes a tool that it cannot fill in, and a title where none is made", () => {
    const script = new TaskScript({ asksForTitle: false, path });
    script.answer(requestOf(script, [], [tool("Read", "file_path", "reason")]));
    expect(script.problems).toEqual(["Read needs reason"]);
    script.answer(requestOf(script, [], []));
    expect(script.problems).toHaveLength(2);
  });
});
