import type { Tool, ToolChoice } from "../../conversation/conversation.ts";
import { type CountedTools, openToolCounter } from "../counted-limits.ts";
import { readCustomTool } from "../custom-tool.ts";
import {
  type Fields,
  isAbsent,
  readArray,
  readObject,
  readOneOf,
  readOptionalString,
  readString,
} from "../read-fields.ts";
import {
  ensureDistinctTools,
  hostedToolForced,
  readStrict,
  readToolName,
  readToolParameters,
  refuseAllowedTools,
} from "../read-tools.ts";
import { joinNamespace } from "./tool-names.ts";
import type { OriginalTool } from "./wire.ts";

/** An array of tools somewhere in a request: `tools`, or those of an `additional_tools` item. */
export interface ToolSource {
  readonly items: readonly unknown[];
  readonly param: string;
}

/** The tools of a request, flattened. */
export interface ResponsesTools {
  readonly tools: readonly Tool[];
  /** Types of tools that would run inside a service; the model does not see them. */
  readonly hosted: ReadonlySet<string>;
  readonly originalTools: readonly (readonly [string, OriginalTool])[];
  /** After flattening, hosted tools included. */
  readonly counted: CountedTools;
}

interface ToolCollection {
  readonly tools: Tool[];
  readonly hosted: Set<string>;
  readonly originalTools: [string, OriginalTool][];
}

/** Reads all tools of a request, within the limits on their number and size. */
export function readResponsesTools(sources: readonly ToolSource[]): ResponsesTools {
  const counter = openToolCounter();
  const collection: ToolCollection = { tools: [], hosted: new Set(), originalTools: [] };
  for (const { items, param } of sources) {
    // Counted before they are read, so that an endless list costs nothing.
    counter.add(items, countFlattened(items));
    for (const [index, item] of items.entries())
      readTool(item, `${param}[${String(index)}]`, collection);
  }
  ensureDistinctTools(collection.tools);
  return { ...collection, counted: counter };
}

/** Reads `tool_choice`; absent is `auto`. */
export function readResponsesToolChoice(value: unknown): ToolChoice {
  if (isAbsent(value)) return { type: "auto" };
  if (typeof value === "string")
    return { type: readOneOf(value, "tool_choice", ["auto", "none", "required"]) };
  const fields = readObject(value, "tool_choice");
  const type = readString(fields["type"], "tool_choice.type");
  if (type === "allowed_tools") return refuseAllowedTools();
  if (type !== "function" && type !== "custom") throw hostedToolForced(type);
  const name = readString(fields["name"], "tool_choice.name");
  const namespace = readOptionalString(fields["namespace"], "tool_choice.namespace");
  return { type: "tool", name: joinNamespace(namespace, name) };
}

function countFlattened(items: readonly unknown[]): number {
  let count = 0;
  for (const item of items) {
    const fields = item as Fields | null;
    const inside = fields?.["type"] === "namespace" ? fields["tools"] : null;
    count += Array.isArray(inside) ? inside.length : 1;
  }
  return count;
}

function readTool(item: unknown, param: string, collection: ToolCollection): void {
  const fields = readObject(item, param);
  if (fields["type"] !== "namespace")
    return readSingleTool(fields, { param, namespace: null }, collection);
  const namespace = readToolName(fields["name"], `${param}.name`);
  const description = readOptionalString(fields["description"], `${param}.description`);
  const first = collection.tools.length;
  for (const [index, inner] of readArray(fields["tools"], `${param}.tools`).entries()) {
    const at = `${param}.tools[${String(index)}]`;
    readSingleTool(readObject(inner, at), { param: at, namespace }, collection);
  }
  const tool = collection.tools[first];
  if (tool !== undefined && description !== null && description !== "")
    collection.tools[first] = describeNamespace(tool, joinNamespace(namespace, "*"), description);
}

/** Said once, with the first of its tools: engines know no namespaces that could be described. */
function describeNamespace(tool: Tool, names: string, description: string): Tool {
  const said = tool.description === null || tool.description === "" ? [] : [tool.description];
  return { ...tool, description: [...said, `All tools ${names}: ${description}`].join("\n\n") };
}

function readSingleTool(
  fields: Fields,
  { param, namespace }: { readonly param: string; readonly namespace: string | null },
  collection: ToolCollection,
): void {
  const type = readString(fields["type"], `${param}.type`);
  if (type !== "function" && type !== "custom") {
    collection.hosted.add(type);
    return;
  }
  const tool = type === "custom" ? readCustomTool(fields, param) : readFunctionTool(fields, param);
  const flatName = joinNamespace(namespace, tool.name);
  collection.tools.push({ ...tool, name: flatName });
  if (namespace !== null || type === "custom")
    collection.originalTools.push([
      flatName,
      { name: tool.name, namespace, custom: type === "custom" },
    ]);
}

function readFunctionTool(fields: Fields, param: string): Tool {
  return {
    name: readToolName(fields["name"], `${param}.name`),
    description: readOptionalString(fields["description"], `${param}.description`),
    parameters: readToolParameters(fields["parameters"], `${param}.parameters`),
    ...readStrict(fields["strict"]),
  };
}
