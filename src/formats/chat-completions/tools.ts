import type { Tool, ToolChoice } from "../../conversation/conversation.ts";
import { type CountedTools, openToolCounter } from "../counted-limits.ts";
import { readCustomTool } from "../custom-tool.ts";
import {
  type Fields,
  isAbsent,
  notOfferedField,
  quote,
  readObject,
  readOneOf,
  readOptionalArray,
  readOptionalString,
  readString,
} from "../read-fields.ts";
import {
  ensureDistinctTools,
  readStrict,
  readToolName,
  readToolParameters,
  refuseAllowedTools,
} from "../read-tools.ts";

/** The tools of a request. */
export interface ChatTools {
  readonly tools: readonly Tool[];
  readonly customTools: readonly string[];
  readonly counted: CountedTools;
}

/** Reads `tools`, within the limits on their number and size. */
export function readChatTools(value: unknown): ChatTools {
  const items = readOptionalArray(value, "tools");
  const counter = openToolCounter();
  counter.add(items, items.length);
  const customTools: string[] = [];
  const tools = items.map((item, index) => {
    const param = `tools[${String(index)}]`;
    const fields = readObject(item, param);
    const type = readString(fields["type"], `${param}.type`);
    if (type === "function") return readFunctionTool(fields["function"], `${param}.function`);
    if (type !== "custom")
      throw notOfferedField(
        `${param}.type`,
        `tools of the type ${quote(type)} are not offered. Use "function" or "custom".`,
      );
    const tool = readCustomTool(readObject(fields["custom"], `${param}.custom`), `${param}.custom`);
    customTools.push(tool.name);
    return tool;
  });
  ensureDistinctTools(tools);
  return { tools, customTools, counted: counter };
}

/** Reads `tool_choice`; absent is `auto`. */
export function readChatToolChoice(value: unknown): ToolChoice {
  if (isAbsent(value)) return { type: "auto" };
  if (typeof value === "string")
    return { type: readOneOf(value, "tool_choice", ["auto", "none", "required"]) };
  const fields = readObject(value, "tool_choice");
  if (fields["type"] === "allowed_tools") return refuseAllowedTools();
  const type = readOneOf(fields["type"], "tool_choice.type", ["function", "custom"]);
  const named = readObject(fields[type], `tool_choice.${type}`);
  return { type: "tool", name: readString(named["name"], `tool_choice.${type}.name`) };
}

function readFunctionTool(value: unknown, param: string): Tool {
  const fields: Fields = readObject(value, param);
  return {
    name: readToolName(fields["name"], `${param}.name`),
    description: readOptionalString(fields["description"], `${param}.description`),
    parameters: readToolParameters(fields["parameters"], `${param}.parameters`),
    ...readStrict(fields["strict"]),
  };
}
