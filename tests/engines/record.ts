import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonRecord } from "../reader/reading.ts";
import { type Engine, type EngineProcess, openEngineProcess } from "./engine.ts";
import { foldRecording } from "./fold-recording.ts";
import { openLlamaCpp } from "./llama-cpp.ts";
import { openOllama } from "./ollama.ts";
import { openVllm } from "./vllm.ts";

// node tests/engines/record.ts [llama-cpp|vllm|ollama] [--case TEXT] [--at URL]: writes what real engines say to tests/cases/upstream/, byte for
// byte, with what it must be understood as. --at: an engine that runs already, with the template for calls.
const words = process.argv.slice(2);
const only = words.includes("--case") ? (words[words.indexOf("--case") + 1] ?? "") : "";
const at = words.includes("--at") ? (words[words.indexOf("--at") + 1] ?? null) : null;
const engines = { "llama-cpp": openLlamaCpp, vllm: openVllm, ollama: openOllama };
const folder = join(import.meta.dirname, "../cases/upstream");

const parameters = {
  type: "object",
  properties: { city: { type: "string", enum: ["Paris", "Rome"] }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
const tools = [
  {
    type: "function",
    function: {
      name: "weather",
      description: "Tells the weather of a city.",
      parameters,
      strict: true,
    },
  },
];
const forced = { tools, tool_choice: "required", max_tokens: 200 };

interface Case {
  readonly name: string;
  readonly template: "calls" | "several" | "thinks";
  readonly content: string;
  readonly send: JsonRecord;
}

const question = "What will the weather be in Rome for 3 days?";
const cases: readonly Case[] = [
  { name: "text", template: "calls", content: "Say hello.", send: {} },
  { name: "text-unicode", template: "calls", content: "Repeat: Grüße aus 東京 🦊", send: {} },
  { name: "length", template: "calls", content: "Count to one hundred.", send: { max_tokens: 6 } },
  {
    name: "stop-sequence",
    template: "calls",
    content: "Count: 1, 2, 3",
    send: { stop: [" the", "3"] },
  },
  {
    name: "json-object",
    template: "calls",
    content: 'Answer with the JSON object {"ok": true}.',
    send: { response_format: { type: "json_object" } },
  },
  { name: "forced-call", template: "calls", content: question, send: forced },
  {
    name: "forced-call-by-name",
    template: "calls",
    content: question,
    send: { ...forced, tool_choice: { type: "function", function: { name: "weather" } } },
  },
  {
    name: "cut-in-a-call",
    template: "calls",
    content: question,
    send: { ...forced, max_tokens: 20 },
  },
  {
    name: "several-calls",
    template: "several",
    content: "What will the weather be in Rome and in Paris for 3 days?",
    send: { ...forced, parallel_tool_calls: true },
  },
  {
    name: "a-call-or-words",
    template: "calls",
    content: question,
    send: { tools, max_tokens: 60 },
  },
  {
    name: "reasoning",
    template: "thinks",
    content: "Is 7 a prime number?",
    send: { max_tokens: 60 },
  },
];

let recorded = 0;
for (const [name, open] of Object.entries(engines)) {
  if (words[0] !== undefined && !words[0].startsWith("--") && words[0] !== name) continue;
  const engine = await open();
  for (const template of ["calls", "several", "thinks"] as const) {
    const path = engine.templates[template];
    const wanted = cases.filter((each) => each.template === template && each.name.includes(only));
    if (path === null || wanted.length === 0 || (at !== null && template !== "calls")) continue;
    await using running = at === null ? await started(engine, path) : null;
    for (const each of wanted) await write(engine, running?.origin ?? at ?? "", each);
  }
}
console.log(`${String(recorded)} streams recorded`);

async function started(engine: Engine, template: string): Promise<EngineProcess> {
  const running = await openEngineProcess(engine, { template });
  await running.start();
  return running;
}

async function write(engine: Engine, origin: string, { content, name, send }: Case): Promise<void> {
  const usage = {
    include_usage: true,
    ...(engine.name === "vllm" ? { continuous_usage_stats: true } : {}),
  };
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "smol",
      messages: [{ role: "user", content }],
      temperature: 0,
      max_tokens: 24,
      stream: true,
      stream_options: usage,
      ...send,
    }),
  });
  const text = await response.text();
  if (!response.ok) {
    console.log(
      `${engine.name} ${name}: not recorded, ${String(response.status)} ${text.slice(0, 300)}`,
    );
    return;
  }
  const file = join(folder, engine.name, `${name}-${engine.name}-${engine.version}`);
  mkdirSync(join(folder, engine.name), { recursive: true });
  writeFileSync(`${file}.sse`, text);
  writeFileSync(`${file}.expected.json`, `${expectedText(text)}\n`);
  recorded += 1;
}

/** An event a line, as the cases written by hand have them. */
function expectedText(text: string): string {
  const { ending, events } = foldRecording(text);
  const lines = events.map((event) => `    ${JSON.stringify(event)}`).join(",\n");
  return `{\n  "events": [\n${lines}\n  ],\n  "ending": ${JSON.stringify(ending)}\n}`;
}
