import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agents, codexWithKnownModels, opencodeWithOtherFormats } from "../agents/agents.ts";
import { messagesOf, offeredTools } from "../agents/tools.ts";
import { isRecord, type JsonRecord } from "../cases/files.ts";
import type { RecordedRequest } from "../doubles/scripted-deployment.ts";
import { startService, type TestService } from "../service/start-service.ts";
import { installedVersion } from "./record-sdk.ts";
import {
  allRecordings,
  parseRecording,
  printRecording,
  type RecordedCall,
  recordingFile,
} from "./recording.ts";
import { buildReplay } from "./replay.ts";
import { sdks } from "./sdk-programs.ts";

const recordings = allRecordings();

let service: TestService | null = null;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.[Symbol.asyncDispose]());

describe("the recordings", () => {
  it("are of every client that is run, in the version that is run", () => {
    const wanted = [
      ...[...agents, ...codexWithKnownModels, ...opencodeWithOtherFormats].map(
        ({ name, version }) => [name, version],
      ),
      ...sdks.map(({ name, packages }) => [name, packages.map(installedVersion).join(" / ")]),
    ];
    const there = recordings.map(({ client, version }) => [client, version]);
    const how = "take up a new version with: npm run record -- CLIENT";
    expect(Object.fromEntries(there), how).toEqual(Object.fromEntries(wanted));
  });

  it.each(recordings)("of $client say nothing of who recorded them, and quote nobody", (one) => {
    const text = readFileSync(recordingFile(one.client), "utf8");
    const identifying =
      /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}|trib_|\/tmp\/|\/home\/|127\.0\.0\.1|localhost|word-[0-9a-f]{8}/giu;
    expect(text.match(identifying)).toBeNull();
    // A name, a list of names or JSON; whoever speaks uses more spaces.
    const spoken = stringsOf(JSON.parse(text)).map((one) => one.replaceAll(/<[a-z][^<>]*>/gu, ""));
    expect(spoken.filter((string) => / .* .* .* /u.test(string))).toEqual([]);
  });

  it.each(recordings)("of $client are the same once printed and read again", (recording) => {
    expect(parseRecording(printRecording(recording))).toEqual(recording);
  });
});

describe.each(recordings)("what $client $version sends", ({ calls }) => {
  async function send(call: RecordedCall, body: JsonRecord): Promise<Answered> {
    if (service === null) throw new Error("no service");
    const before = service.deployment.requests.length;
    const { authorization: _bearer, "x-api-key": _key, ...headers } = call.headers;
    const response = await service.post(call.path, body, { headers });
    const text = await response.text();
    return {
      status: response.status,
      text,
      upstream: service.deployment.requests.slice(before),
    };
  }

  it.each(calls.filter(isGeneration))("is answered, nothing of it lost: $what", async (call) => {
    const { body, texts } = buildReplay(call.body ?? {});
    const { status, text, upstream } = await send(call, body);
    expect(status, text).toBe(200);
    const [request, ...more] = upstream;
    if (request === undefined) throw new Error("nothing reached the deployment");
    expect(more).toEqual([]);
    const wanted = JSON.stringify(toldToModel(body));
    for (const [path, words] of texts) {
      expect(request.body.includes(words), `${path} is passed on`).toBe(wanted.includes(words));
    }
    expect(offeredTools(request).map(({ name }) => name)).toEqual(toolNamesOf(body));
    expect(passedIds(request)).toEqual(idsOf(body));
    expect(passedNames(request)).toEqual(namesOfCalls(body));
  });

  const refusals = calls.filter((call) => call.body?.["thread"] !== undefined);
  it.skipIf(refusals.length === 0).for(refusals)(
    "is refused in the words that the SDK knows: $what",
    async (call) => {
      const { status, text, upstream } = await send(call, buildReplay(call.body ?? {}).body);
      expect({ status, upstream }).toEqual({ status: 400, upstream: [] });
      expect(text).toContain("thread_unsupported_request");
    },
  );

  const counts = calls.filter((call) => routeOf(call).endsWith("/count_tokens"));
  it.skipIf(counts.length === 0).for(counts)("is counted: $what", async (call) => {
    const { status, text, upstream } = await send(call, buildReplay(call.body ?? {}).body);
    expect({ status, upstream }).toEqual({ status: 200, upstream: [] });
    expect(JSON.parse(text)).toEqual({ input_tokens: expect.any(Number) });
  });
});

interface Answered {
  readonly status: number;
  readonly text: string;
  /** What it made the deployment hear. */
  readonly upstream: readonly RecordedRequest[];
}

const generations = new Set(["/v1/chat/completions", "/v1/responses", "/v1/messages"]);

/** A body without what the model does not see: all that a service of this kind may leave out. */
function toldToModel(body: JsonRecord): JsonRecord {
  const { input, messages, system, tools } = body;
  return {
    input: Array.isArray(input) ? records(input).filter(isTold).map(withToldTools) : input,
    messages: records(messages).map((message) => {
      const { content } = message;
      return { ...message, content: Array.isArray(content) ? content.filter(isTold) : content };
    }),
    system: Array.isArray(system) ? system.filter(isTold) : system,
    instructions: body["instructions"],
    ...withToldTools({ tools }),
  };
}

/** A thought comes back sealed; one that was not sealed here, for this account, is not the model's own. */
function isTold({ text, type }: JsonRecord): boolean {
  if (type === "reasoning" || type === "thinking") return false;
  // It changes with every session, and a prompt's beginning is what engines cache.
  return !(typeof text === "string" && text.startsWith("x-anthropic-billing-header:"));
}

/** Tools of the provider are left out. */
function withToldTools(item: JsonRecord): JsonRecord {
  const { tools, ...others } = item;
  const told = records(tools).filter(({ type }) => runHere.has(type) || type === "namespace");
  return { ...others, tools: told };
}

const runHere: ReadonlySet<unknown> = new Set([undefined, "function", "custom"]);

function routeOf({ path }: RecordedCall): string {
  return path.split("?")[0] ?? "";
}

function isGeneration(call: RecordedCall): boolean {
  return generations.has(routeOf(call)) && call.body?.["thread"] === undefined;
}

function records(value: unknown): readonly JsonRecord[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** Names of the tools that are functions to the model, in order, as it knows them. */
function toolNamesOf({ input, tools }: JsonRecord): readonly string[] {
  const lists = [tools, ...records(input).map((item) => item["tools"])];
  return lists.flatMap(records).flatMap((tool) => {
    const inner = isRecord(tool["function"]) ? tool["function"] : tool;
    const name = String(inner["name"]);
    if (tool["type"] === "namespace") {
      return records(tool["tools"]).map((one) => `${name}__${String(one["name"])}`);
    }
    return runHere.has(tool["type"]) ? [name] : [];
  });
}

/** Everything that a conversation consists of, whatever the format: messages, items, blocks and calls. */
function partsOf({ input, messages }: JsonRecord): readonly JsonRecord[] {
  return [...records(input), ...records(messages)].flatMap((message) => [
    message,
    ...records(message["content"]),
    ...records(message["tool_calls"]),
  ]);
}

/** Ids of calls and of what answers them, in order. */
function idsOf(body: JsonRecord): readonly string[] {
  return partsOf(body).flatMap((part) => {
    const isCall = ["tool_use", "function"].includes(String(part["type"]));
    const id = part["call_id"] ?? part["tool_call_id"] ?? part["tool_use_id"];
    return [isCall ? part["id"] : id].filter((one) => typeof one === "string");
  });
}

function passedIds(request: RecordedRequest): readonly string[] {
  return idsOf({ messages: messagesOf(request) });
}

function namesOfCalls(body: JsonRecord): readonly string[] {
  return partsOf(body).flatMap((part) => {
    const { function: called, name, namespace } = part;
    if (isRecord(called)) return [String(called["name"])];
    if (!["tool_use", "function_call", "custom_tool_call"].includes(String(part["type"]))) {
      return [];
    }
    return [typeof namespace === "string" ? `${namespace}__${String(name)}` : String(name)];
  });
}

function passedNames(request: RecordedRequest): readonly string[] {
  return namesOfCalls({ messages: messagesOf(request) });
}

function stringsOf(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(stringsOf);
}
