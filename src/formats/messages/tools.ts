import type { Tool, ToolChoice } from "../../conversation/conversation.ts";
import { type CountedTools, openToolCounter } from "../counted-limits.ts";
import {
  type Fields,
  isAbsent,
  notOfferedField,
  quote,
  readObject,
  readOneOf,
  readOptionalArray,
  readOptionalBoolean,
  readOptionalString,
  readString,
} from "../read-fields.ts";
import {
  ensureDistinctTools,
  type OfferedTools,
  readStrict,
  readToolName,
  readToolParameters,
} from "../read-tools.ts";

/** The tools of a request; `counted` is before hosted ones were left out. */
export interface MessagesTools extends OfferedTools {
  readonly counted: CountedTools;
}

// `web_search_20250305`, `bash_20250124` and so on; agents always list some.
const hostedType = /_[0-9]{8}$/u;

/** Reads `tools`, within the limits on their number and size. Hosted tools are left out, not refused. */
export function readMessagesTools(value: unknown): MessagesTools {
  const items = readOptionalArray(value, "tools");
  const counter = openToolCounter();
  counter.add(items, items.length);
  const tools: Tool[] = [];
  const hosted = new Set<string>();
  for (const [index, item] of items.entries()) {
    const param = `tools[${String(index)}]`;
    const fields = readObject(item, param);
    const type = readOptionalString(fields["type"], `${param}.type`) ?? "custom";
    if (type === "custom") tools.push(readTool(fields, param));
    else if (hostedType.test(type) || hostedTypes.has(type)) addHosted(hosted, fields, type);
    else
      throw notOfferedField(
        `${param}.type`,
        `tools of the type ${quote(type)} are not offered. Use "custom" or leave the type out.`,
      );
  }
  ensureDistinctTools(tools);
  return { tools, hosted, counted: counter };
}

// Hosted types without a date: a whole MCP server, whose `mcp_servers` is ignored, and two searches.
const hostedTypes = new Set(["mcp_toolset", "tool_search_tool_bm25", "tool_search_tool_regex"]);

function addHosted(hosted: Set<string>, fields: Fields, type: string): void {
  hosted.add(type);
  const name = fields["name"];
  if (typeof name === "string") hosted.add(name);
}

/** What a request wants of its tools; absent is `auto`. */
export function readMessagesToolChoice(value: unknown): {
  readonly choice: ToolChoice;
  readonly parallelToolCalls: boolean | null;
} {
  if (isAbsent(value)) return { choice: { type: "auto" }, parallelToolCalls: null };
  const fields = readObject(value, "tool_choice");
  const disabled = readOptionalBoolean(
    fields["disable_parallel_tool_use"],
    "tool_choice.disable_parallel_tool_use",
  );
  return { choice: readChoice(fields), parallelToolCalls: disabled === null ? null : !disabled };
}

function readChoice(fields: Fields): ToolChoice {
  const type = readOneOf(fields["type"], "tool_choice.type", ["auto", "any", "tool", "none"]);
  switch (type) {
    case "auto":
    case "none":
      return { type };
    case "any":
      return { type: "required" };
    case "tool":
      return { type, name: readString(fields["name"], "tool_choice.name") };
    default:
      return type satisfies never;
  }
}

/** `defer_loading` and every other field of a tool is ignored. */
function readTool(fields: Fields, param: string): Tool {
  return {
    name: readToolName(fields["name"], `${param}.name`),
    description: readOptionalString(fields["description"], `${param}.description`),
    parameters: readToolParameters(fields["input_schema"], `${param}.input_schema`),
    ...readStrict(fields["strict"]),
  };
}
