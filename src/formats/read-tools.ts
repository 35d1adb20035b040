import type { JsonObject, Tool, ToolChoice } from "../conversation/conversation.ts";
import type { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import {
  invalidField,
  isAbsent,
  notOfferedField,
  quote,
  readObject,
  readString,
} from "./read-fields.ts";

const toolName = new RegExp(`^[A-Za-z0-9_.-]{1,${String(limits.toolNameCharactersMax)}}$`, "u");

/** The name of a tool or of a namespace. */
export function readToolName(value: unknown, param: string): string {
  const name = readString(value, param);
  if (toolName.test(name)) return name;
  // `param` is `tools`, which clients look for; the message names the field at fault.
  throw invalidField(
    "tools",
    `${param} must have 1 to ${String(limits.toolNameCharactersMax)} characters of A-Z, a-z, 0-9, "_", "." and "-", not ${quote(name)}.`,
  );
}

/** The JSON Schema of a tool's arguments, as it came; null where there is none. */
export function readToolParameters(value: unknown, param: string): JsonObject | null {
  if (isAbsent(value)) return null;
  // Every value below an object that came out of JSON.parse is a JsonValue.
  return readObject(value, param) as JsonObject;
}

/** `strict` of a tool. No format promises to keep to it, so every value but `true` counts as absent. */
export function readStrict(value: unknown): Pick<Tool, "strict"> {
  return value === true ? { strict: true } : {};
}

/** Throws for two tools of one name: a call of the model could mean either. */
export function ensureDistinctTools(tools: readonly Tool[]): void {
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name))
      throw invalidField("tools", `two tools have the name ${quote(name)}; give each its own.`);
    names.add(name);
  }
}

/** Tools that a choice may name, and those that were left out because the service would have to run them. */
export interface OfferedTools {
  readonly tools: readonly Tool[];
  /** Names or types of hosted tools in the request. */
  readonly hosted: ReadonlySet<string>;
}

/**
 * The choice that the model sees. Without tools there is nothing to choose, so any choice but a named tool becomes
 * `auto`: agents list hosted tools alone and then ask for `required`.
 */
export function resolveToolChoice(
  requested: ToolChoice,
  { tools, hosted }: OfferedTools,
): ToolChoice {
  if (requested.type === "tool") {
    if (tools.some((tool) => tool.name === requested.name)) return requested;
    if (hosted.has(requested.name)) throw hostedToolForced(requested.name);
    throw invalidField(
      "tool_choice",
      `names the tool ${quote(requested.name)}, which is not in "tools"; add it there or choose another.`,
    );
  }
  return tools.length === 0 ? { type: "auto" } : requested;
}

/** A 400 for a request that insists on a tool which the service would have to run. */
export function hostedToolForced(name: string): Failure {
  return notOfferedField(
    "tool_choice",
    `the tool ${quote(name)} would run inside the service, which runs no tools. Use "auto" or a tool that you run yourself.`,
  );
}

/** A 400 for `allowed_tools`, in whichever format. */
export function refuseAllowedTools(): never {
  throw notOfferedField(
    "tool_choice",
    'allowed_tools is not offered. List only the tools that may be used and choose "auto" or "required".',
  );
}
