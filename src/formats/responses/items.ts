import type { AssistantPart, Turn } from "../../conversation/conversation.ts";
import type { Failure } from "../../failure.ts";
import { buildCustomToolArguments } from "../custom-tool.ts";
import {
  type Fields,
  invalidField,
  isAbsent,
  notOfferedField,
  quote,
  readArray,
  readContentParts,
  readInputItems,
  readObject,
  readOneOf,
  readOptionalString,
  readString,
} from "../read-fields.ts";
import { type CallRegister, openCallRegister } from "../call-register.ts";
import { leftOutText, nameOfMedia, refuseMedia } from "../media-parts.ts";
import type { ReasoningVerifier } from "../wire-format.ts";
import { joinNamespace } from "./tool-names.ts";
import type { ToolSource } from "./tools.ts";

/** `input`, read: one turn an item at most. */
export interface ResponsesInput {
  readonly turns: readonly Turn[];
  readonly itemCount: number;
  /** Tools that came among the items. */
  readonly toolSources: readonly ToolSource[];
}

/** Reads `input`. A string is one user message. */
export function readResponsesInput(value: unknown, reasoning: ReasoningVerifier): ResponsesInput {
  if (typeof value === "string")
    return { turns: [{ role: "user", text: value }], itemCount: 1, toolSources: [] };
  const items = readInputItems(readContentParts(value, "input", "items"), "input");
  const toolSources: ToolSource[] = [];
  const turns: Turn[] = [];
  const reader = { reasoning, calls: openCallRegister(), toolSources };
  for (const [index, item] of items.entries()) {
    const param = `input[${String(index)}]`;
    const turn = readItem(readObject(item, param), param, reader);
    if (turn !== null) turns.push(turn);
  }
  return { turns, itemCount: items.length, toolSources };
}

interface ItemReader {
  readonly reasoning: ReasoningVerifier;
  readonly calls: CallRegister;
  readonly toolSources: ToolSource[];
}

function readItem(fields: Fields, param: string, reader: ItemReader): Turn | null {
  const type = readItemType(fields, param);
  switch (type) {
    case "message":
      return readMessage(fields, param);
    case "function_call":
      return readCall(fields, param, {
        calls: reader.calls,
        argumentsText: readString(fields["arguments"], `${param}.arguments`),
      });
    case "custom_tool_call":
      return readCall(fields, param, {
        calls: reader.calls,
        argumentsText: buildCustomToolArguments(readString(fields["input"], `${param}.input`)),
      });
    case "function_call_output":
    case "custom_tool_call_output":
      return readToolResult(fields, param, reader.calls);
    case "reasoning":
      return readReasoning(fields, reader.reasoning);
    case "additional_tools":
      reader.toolSources.push({
        items: readArray(fields["tools"], `${param}.tools`),
        param: `${param}.tools`,
      });
      return null;
    default:
      if (leftOutItems.has(type)) return null;
      throw refuseItem(type, param);
  }
}

/** Messages often come without a type, and a reference may be nothing but an id. */
function readItemType(fields: Fields, param: string): string {
  const type = readOptionalString(fields["type"], `${param}.type`);
  if (type !== null) return type;
  if (!isAbsent(fields["role"])) return "message";
  const isReference =
    typeof fields["id"] === "string" &&
    Object.keys(fields).every((key) => key === "id" || key === "type");
  if (isReference) return "item_reference";
  throw invalidField(`${param}.type`, 'is missing; only a message, with its "role", needs none.');
}

/** Types of records of tools that another service ran: left out, as such tools are. */
const leftOutItems: ReadonlySet<string> = new Set([
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "mcp_list_tools",
  "mcp_approval_request",
  "mcp_approval_response",
  "mcp_call",
]);

function refuseItem(type: string, param: string): Failure {
  if (type === "item_reference")
    return notOfferedField(
      param,
      "item_reference is not offered, as nothing is stored here. Send the items themselves: with the OpenAI SDK pass the earlier response's `output` back, with the AI SDK set `providerOptions.openai.store = false`.",
    );
  if (type === "compaction_trigger" || type === "compaction")
    return notOfferedField(
      param,
      `${type} is not offered. Ask for a summary in an ordinary request and send that in place of older items.`,
    );
  return notOfferedField(
    `${param}.type`,
    `items of the type ${quote(type)} are not offered. Use "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning" or "additional_tools".`,
  );
}

function readMessage(fields: Fields, param: string): Turn | null {
  const role = readOneOf(fields["role"], `${param}.role`, [
    "user",
    "assistant",
    "system",
    "developer",
  ]);
  const content = fields["content"];
  const at = `${param}.content`;
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", text: readMessageText(content, at) };
    case "user":
      return { role: "user", text: readMessageText(content, at) };
    case "assistant":
      // An empty answer comes back as an empty message, which is no turn.
      return assistantTurn({
        type: "text",
        text: isAbsent(content) ? "" : readMessageText(content, at),
      });
    default:
      return role satisfies never;
  }
}

function assistantTurn(part: AssistantPart): Turn | null {
  return part.type !== "tool-call" && part.text === ""
    ? null
    : { role: "assistant", parts: [part] };
}

function readMessageText(value: unknown, param: string): string {
  if (typeof value === "string") return value;
  const texts = readContentParts(value, param, "text parts").map((item, index) => {
    const at = `${param}[${String(index)}]`;
    const part = readObject(item, at);
    const media = nameOfMedia(part);
    return media === null ? readTextPart(part, at) : refuseMedia(media, at);
  });
  return texts.join("");
}

function readTextPart(part: Fields, param: string): string {
  const type = readOneOf(part["type"], `${param}.type`, [
    "input_text",
    "output_text",
    "text",
    "refusal",
  ]);
  const field = type === "refusal" ? "refusal" : "text";
  return readString(part[field], `${param}.${field}`);
}

function readCall(
  fields: Fields,
  param: string,
  { calls, argumentsText }: { readonly calls: CallRegister; readonly argumentsText: string },
): Turn | null {
  const id = readCallId(fields, param);
  const name = readString(fields["name"], `${param}.name`);
  const namespace = readOptionalString(fields["namespace"], `${param}.namespace`);
  calls.add(id);
  return assistantTurn({
    type: "tool-call",
    id,
    name: joinNamespace(namespace, name),
    arguments: argumentsText,
  });
}

function readToolResult(fields: Fields, param: string, calls: CallRegister): Turn {
  const callId = readCallId(fields, param);
  calls.ensureAnswers(callId, { param: `${param}.call_id`, item: param });
  const output = fields["output"];
  const at = `${param}.output`;
  if (typeof output === "string") return { role: "tool", callId, text: output };
  const texts = readContentParts(output, at, "text parts").map((item, index) => {
    const place = `${at}[${String(index)}]`;
    const part = readObject(item, place);
    const media = nameOfMedia(part);
    return media === null ? readTextPart(part, place) : leftOutText(media);
  });
  return { role: "tool", callId, text: texts.join("\n") };
}

function readCallId(fields: Fields, param: string): string {
  const id = readString(fields["call_id"], `${param}.call_id`);
  if (id === "") throw invalidField(`${param}.call_id`, "must not be empty.");
  return id;
}

/** Only what was sealed here and comes back intact is the model's own; anything else is dropped without an error. */
function readReasoning(fields: Fields, reasoning: ReasoningVerifier): Turn | null {
  const sealed = fields["encrypted_content"];
  const text = typeof sealed === "string" ? reasoning.unseal(sealed) : null;
  return text === null ? null : assistantTurn({ type: "reasoning", text });
}
