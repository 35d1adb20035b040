import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import type { ParsedRequest, WireFormatName } from "../../src/formats/wire-format.ts";
import { testReasoning } from "../cases/context.ts";
import type { JsonRecord } from "../cases/files.ts";
import { plainRequest } from "../cases/generations.ts";

const formats: readonly WireFormatName[] = ["chat-completions", "responses", "messages"];
const mebibyte = 1024 * 1024;

function parse(format: WireFormatName, changes: JsonRecord): ParsedRequest<unknown> {
  return wireFormats[format].parseRequest(plainRequest(format, changes), testReasoning);
}

function refusal(format: WireFormatName, changes: JsonRecord): Failure {
  try {
    parse(format, changes);
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("the request was accepted");
}

function items(format: WireFormatName, count: number): JsonRecord {
  const list = Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: `${index}`,
  }));
  return { [format === "responses" ? "input" : "messages"]: list };
}

function tool(format: WireFormatName, name: string, description = ""): JsonRecord {
  if (format === "messages") return { name, description, input_schema: { type: "object" } };
  const parameters = { type: "object" };
  return format === "responses"
    ? { type: "function", name, description, parameters, strict: false }
    : { type: "function", function: { name, description, parameters } };
}

function tools(format: WireFormatName, count: number): readonly JsonRecord[] {
  return Array.from({ length: count }, (_, index) => tool(format, `tool_${index}`));
}

/** A list of one tool whose JSON text has exactly so many bytes, most of them in letters of two. */
function toolsOfBytes(format: WireFormatName, bytes: number): readonly JsonRecord[] {
  const missing = bytes - Buffer.byteLength(JSON.stringify([tool(format, "big")]));
  const text = "\u00e9".repeat(Math.floor(missing / 2)) + "a".repeat(missing % 2);
  return [tool(format, "big", text)];
}

function namespace(name: string, count: number): JsonRecord {
  return { type: "namespace", name, description: "", tools: tools("responses", count) };
}

/** An input whose first item brings tools along. */
function extra(list: readonly JsonRecord[]): JsonRecord {
  return {
    input: [
      { type: "additional_tools", role: "developer", tools: list },
      { role: "user", content: "Hello" },
    ],
  };
}

// For example: a Messages request of 2,000 messages is read, and one of 2,001 is refused with the words "2,000".
describe.each(formats)("the counted limits of %s", (format) => {
  const input = format === "responses" ? "input" : "messages";

  it("take 2,000 items and refuse 2,001", () => {
    expect(parse(format, items(format, 2_000)).itemCount).toBe(2_000);
    const failure = refusal(format, items(format, 2_001));
    expect(failure.code).toBe("invalid_request");
    expect(failure.facts.param).toBe(input);
    expect(failure.message).toMatch(/2,?001[^]*2,?000/);
  });

  it("take 128 tools and refuse 129", () => {
    expect(parse(format, { tools: tools(format, 128) }).toolCount).toBe(128);
    const failure = refusal(format, { tools: tools(format, 129) });
    expect(failure.code).toBe("invalid_request");
    expect(failure.facts.param).toBe("tools");
    expect(failure.message).toMatch(/129[^]*128/);
  });

  it("take tools of 1 MiB of JSON, in bytes and not characters, and refuse one byte more", () => {
    const edge = toolsOfBytes(format, mebibyte);
    expect(Buffer.byteLength(JSON.stringify(edge))).toBe(mebibyte);
    expect(parse(format, { tools: edge }).toolCount).toBe(1);
    const failure = refusal(format, { tools: toolsOfBytes(format, mebibyte + 1) });
    expect(failure.code).toBe("invalid_request");
    expect(failure.facts.param).toBe("tools");
  });
});

describe.each(formats)("the fields of %s", (format) => {
  const input = format === "responses" ? "input" : "messages";

  it("are checked before any limit on counts", () => {
    const tooMuch = [
      items(format, 2_001),
      { tools: tools(format, 129) },
      { tools: toolsOfBytes(format, mebibyte + 1) },
    ];
    for (const changes of tooMuch) {
      expect(refusal(format, changes).facts.param).not.toBe("temperature");
      expect(refusal(format, { ...changes, temperature: "warm" }).facts.param).toBe("temperature");
      expect(refusal(format, { ...changes, tool_choice: 7 }).facts.param).toBe("tool_choice");
    }
  });

  it("are checked before them in each element too", () => {
    const list = items(format, 2_001)[input] as JsonRecord[];
    const wrong = [...list.slice(0, 2_000), { role: "user", content: 7 }];
    expect(refusal(format, { [input]: wrong }).facts.param).toBe(`${input}[2000].content`);
    const unnamed = [...tools(format, 128), tool(format, "")];
    expect(refusal(format, { tools: unnamed }).message).toContain("tools[128]");
  });
});

describe("the tool limits of Responses", () => {
  it("count what namespaces hold", () => {
    const list = [namespace("a", 100), ...tools("responses", 28)];
    expect(parse("responses", { tools: list }).toolCount).toBe(128);
    expect(refusal("responses", { tools: [...list, tool("responses", "more")] }).facts.param).toBe(
      "tools",
    );
  });

  it("count additional tools beside those of the request", () => {
    const request = { ...extra([namespace("a", 64)]), tools: tools("responses", 64) };
    expect(parse("responses", request).toolCount).toBe(128);
    const tooMany = { ...extra([namespace("a", 65)]), tools: tools("responses", 64) };
    expect(refusal("responses", tooMany).facts.param).toBe("tools");
  });

  it("weigh all sources together", () => {
    const half = toolsOfBytes("responses", mebibyte / 2);
    const other = [{ type: "namespace", name: "n", description: "", tools: half }];
    expect(refusal("responses", { ...extra(other), tools: half }).facts.param).toBe("tools");
    const less = [{ type: "namespace", name: "n", description: "", tools: tools("responses", 1) }];
    expect(parse("responses", { ...extra(less), tools: half }).toolCount).toBe(2);
  });

  it("count hosted tools, though they are left out", () => {
    const hosted = Array.from({ length: 129 }, () => ({ type: "web_search" }));
    expect(refusal("responses", { tools: hosted }).facts.param).toBe("tools");
    expect(parse("responses", { tools: hosted.slice(1) }).toolCount).toBe(128);
    expect(parse("responses", { tools: hosted.slice(1) }).conversation.tools).toEqual([]);
  });
});

describe("the tool limits of Messages", () => {
  it("count server tools, though they are left out", () => {
    const server = Array.from({ length: 129 }, (_, index) => ({
      type: "web_search_20250305",
      name: `web_search_${index}`,
    }));
    expect(refusal("messages", { tools: server }).facts.param).toBe("tools");
    expect(parse("messages", { tools: server.slice(1) }).toolCount).toBe(128);
  });
});
