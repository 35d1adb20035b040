import { Ajv2020 } from "ajv/dist/2020.js";
import {
  getLlama,
  LlamaGrammarEvaluationState,
  LlamaLogLevel,
  type Llama,
  type LlamaContextSequence,
  type LlamaGrammar,
  type LlamaModel,
} from "node-llama-cpp";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openChatPrompts } from "../../engine/src/chat-prompt.ts";
import { readCommandLine } from "../../engine/src/command-line.ts";
import type { JsonObject, Tool } from "../../engine/src/conversation.ts";
import { openJsonObjectEnd } from "../../engine/src/json-object-end.ts";
import { fetchModel, findModel } from "../../engine/src/models.ts";
import { openToolGrammars } from "../../engine/src/tool-grammars.ts";
import { isRecord } from "../cases/files.ts";
import { readRecordingOf } from "../recordings/recording.ts";

// Why the grammar of a schema is ours: the default model calls tools of real agents, as they were recorded, once under
// the library's own grammar and once under ours, after the same prompt.

const agents = ["Claude Code", "Codex", "opencode"];
const toolCount = 8;
/** Longer ones tell nothing new, and reading them is what takes time. */
const schemaCharactersMax = 560;
const outputTokensMax = 100;
/** Half a minute on a machine without other work. */
const patienceMs = 900_000;

interface Call {
  readonly tool: string;
  /** null: more than it may write here. */
  readonly input: JsonObject | null;
  readonly isValid: boolean;
  readonly optional: readonly string[];
  readonly written: readonly string[];
  readonly tokens: number;
}

/** The tools of a recorded client, each once. */
function readTools(client: string): readonly Tool[] {
  const found = new Map<string, Tool>();
  for (const { body } of readRecordingOf(client)?.calls ?? []) {
    const tools: readonly unknown[] = Array.isArray(body?.["tools"]) ? body["tools"] : [];
    for (const tool of tools.filter(isRecord)) {
      const inner = isRecord(tool["function"]) ? tool["function"] : tool;
      const { name, parameters, input_schema: input } = inner;
      const schema = parameters ?? input;
      if (typeof name !== "string" || !isRecord(schema)) continue;
      found.set(name, { name, description: null, parameters: schema as JsonObject });
    }
  }
  return [...found.values()];
}

function listOptional({ parameters }: Tool): readonly string[] {
  const properties = parameters?.["properties"];
  const required = parameters?.["required"];
  const listed: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.keys(isRecord(properties) ? properties : {}).filter(
    (name) => !listed.includes(name),
  );
}

describe("arguments of recorded agents' tools, written by the default model", () => {
  let folder = "";
  let llama: Llama;
  let model: LlamaModel;
  let sequence: LlamaContextSequence;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "library-grammar-"));
    const { cacheDir } = readCommandLine([], process.env);
    const modelPath = await fetchModel(findModel(null), {
      folders: { dataDir: folder, cacheDir },
      thorough: false,
      environment: process.env,
      onProgress: () => undefined,
      signal: AbortSignal.timeout(200_000),
    });
    llama = await getLlama({
      gpu: false,
      build: "never",
      skipDownload: true,
      logLevel: LlamaLogLevel.error,
      // Threads that wait for each other take very long beside other work.
      maxThreads: 1,
    });
    model = await llama.loadModel({ modelPath });
    sequence = (await model.createContext({ contextSize: 2_048, sequences: 1 })).getSequence();
  });

  afterAll(async () => {
    await llama.dispose();
    await rm(folder, { recursive: true, force: true });
  });

  async function call(tool: Tool, grammar: LlamaGrammar): Promise<Call> {
    const prompt = await openChatPrompts(model, () => undefined)(
      {
        turns: [{ role: "user", text: `Call ${tool.name}.` }],
        tools: [tool],
        toolChoice: { type: "tool", name: tool.name },
      },
      true,
      AbortSignal.timeout(60_000),
    );
    const tokens = [...prompt.tokens];
    await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
    const state = new LlamaGrammarEvaluationState({ model, grammar });
    const end = openJsonObjectEnd();
    let text = "";
    let count = 0;
    let isWhole = false;
    const sampling = { temperature: 0.2, topP: 0.9, seed: 7, grammarEvaluationState: state };
    for await (const token of sequence.evaluate(tokens.slice(sequence.nextTokenIndex), sampling)) {
      const piece = model.detokenize([token]);
      text += piece;
      count += 1;
      isWhole = end.add(piece) !== -1;
      if (isWhole || count === outputTokensMax) break;
    }
    const input = isWhole ? (JSON.parse(text) as JsonObject) : null;
    const { $schema: _dialect, ...schema } = tool.parameters ?? {};
    const isValid = input !== null && new Ajv2020({ strict: false }).validate(schema, input);
    const optional = listOptional(tool);
    const written = optional.filter((name) => input !== null && name in input);
    return { tool: tool.name, input, isValid, optional, written, tokens: count };
  }

  /** Those with most to invent, one prompt for both grammars. */
  function pickTools(): readonly Tool[] {
    const short = agents
      .flatMap((agent) => readTools(agent))
      .filter(({ parameters }) => JSON.stringify(parameters).length < schemaCharactersMax);
    return short
      .toSorted((a, b) => listOptional(b).length - listOptional(a).length)
      .slice(0, toolCount);
  }

  function summarize(calls: readonly Call[]) {
    const whole = calls.filter(({ input }) => input !== null);
    const sum = (count: (one: Call) => number) =>
      whole.reduce((total, one) => total + count(one), 0);
    return {
      calls: calls.length,
      whole: whole.length,
      valid: sum(({ isValid }) => Number(isValid)),
      optional: sum(({ optional }) => optional.length),
      written: sum(({ written }) => written.length),
      tokens: Math.round(calls.reduce((total, one) => total + one.tokens, 0) / calls.length),
    };
  }

  it(
    "have every optional property under the library's grammar, and leave some out under ours",
    async () => {
      const warnings: string[] = [];
      const grammars = openToolGrammars({ llama, model }, (words) => warnings.push(words));
      const [theirs, ours]: [Call[], Call[]] = [[], []];
      const tools = pickTools();
      expect(tools).toHaveLength(toolCount);
      for (const tool of tools) {
        // Its types know a part of what agents send.
        const library = await llama.createGrammarForJsonSchema((tool.parameters ?? {}) as never);
        theirs.push(await call(tool, library));
        ours.push(await call(tool, await grammars.argumentsOf(tool)));
      }
      const [library, engine] = [summarize(theirs), summarize(ours)];
      console.log(JSON.stringify({ library, engine }));
      expect(warnings).toEqual([]);
      expect(library.whole).toBeGreaterThan(0);
      expect(library.written).toBe(library.optional);
      expect(engine.valid).toBe(engine.whole);
      expect(engine.whole).toBeGreaterThanOrEqual(library.whole);
      expect(engine.written).toBeLessThan(engine.optional / 2);
    },
    patienceMs,
  );
});
