import type { AssistantPart, ToolCall, Turn } from "../../conversation/conversation.ts";
import { buildCustomToolArguments } from "../custom-tool.ts";
import {
  type Fields,
  invalidField,
  isAbsent,
  notOfferedField,
  quote,
  readContentParts,
  readObject,
  readOneOf,
  readOptionalArray,
  readOptionalString,
  readString,
} from "../read-fields.ts";
import { type CallRegister, openCallRegister } from "../call-register.ts";
import { leftOutText, nameOfMedia, refuseMedia } from "../media-parts.ts";

/** Reads `messages`, one turn each, in order. An assistant message that says nothing is no turn. */
export function readChatMessages(items: readonly unknown[]): readonly Turn[] {
  const calls = openCallRegister();
  const turns: Turn[] = [];
  for (const [index, item] of items.entries()) {
    const param = `messages[${String(index)}]`;
    const turn = readMessage(readObject(item, param), param, calls);
    if (turn !== null) turns.push(turn);
  }
  return turns;
}

function readMessage(fields: Fields, param: string, calls: CallRegister): Turn | null {
  if (fields["role"] === "function")
    throw notOfferedField(`${param}.role`, 'this older role is not offered. Use "tool" instead.');
  const role = readOneOf(fields["role"], `${param}.role`, [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
  ]);
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", text: readText(fields["content"], `${param}.content`) };
    case "user":
      return { role: "user", text: readText(fields["content"], `${param}.content`) };
    case "assistant":
      return readAssistant(fields, param, calls);
    case "tool":
      return readToolResult(fields, param, calls);
    default:
      return role satisfies never;
  }
}

function readText(value: unknown, param: string): string {
  if (typeof value === "string") return value;
  return readParts(value, param, ["text"]).join("");
}

function readParts(
  value: unknown,
  param: string,
  types: readonly ("text" | "refusal")[],
): readonly string[] {
  return readContentParts(value, param, "text parts").map((item, index) => {
    const at = `${param}[${String(index)}]`;
    const part = readObject(item, at);
    const media = nameOfMedia(part);
    if (media !== null) return refuseMedia(media, at);
    const type = readOneOf(part["type"], `${at}.type`, types);
    return readString(part[type], `${at}.${type}`);
  });
}

function readToolResult(fields: Fields, param: string, calls: CallRegister): Turn {
  const callId = readString(fields["tool_call_id"], `${param}.tool_call_id`);
  calls.ensureAnswers(callId, { param: `${param}.tool_call_id`, item: param });
  const content = fields["content"];
  const at = `${param}.content`;
  if (typeof content === "string") return { role: "tool", callId, text: content };
  const texts = readContentParts(content, at, "text parts").map((item, index) =>
    readResultPart(readObject(item, `${at}[${String(index)}]`), `${at}[${String(index)}]`),
  );
  return { role: "tool", callId, text: texts.join("\n") };
}

function readResultPart(part: Fields, param: string): string {
  const media = nameOfMedia(part);
  if (media !== null) return leftOutText(media);
  readOneOf(part["type"], `${param}.type`, ["text"]);
  return readString(part["text"], `${param}.text`);
}

function readAssistant(fields: Fields, param: string, calls: CallRegister): Turn | null {
  if (!isAbsent(fields["function_call"]))
    throw notOfferedField(
      `${param}.function_call`,
      'this older spelling is not offered. Use "tool_calls" instead.',
    );
  if (!isAbsent(fields["audio"])) return refuseMedia("audio", `${param}.audio`);
  const parts: AssistantPart[] = [];
  const reasoning =
    readOptionalString(fields["reasoning_content"], `${param}.reasoning_content`) ??
    readOptionalString(fields["reasoning"], `${param}.reasoning`);
  if (reasoning !== null && reasoning !== "") parts.push({ type: "reasoning", text: reasoning });
  const text = readAssistantText(fields["content"], `${param}.content`);
  if (text !== "") parts.push({ type: "text", text });
  const toolCalls = readOptionalArray(fields["tool_calls"], `${param}.tool_calls`);
  for (const [index, item] of toolCalls.entries()) {
    const at = `${param}.tool_calls[${String(index)}]`;
    const call = readToolCall(readObject(item, at), at);
    calls.add(call.id);
    parts.push(call);
  }
  return parts.length === 0 ? null : { role: "assistant", parts };
}

/** Agents send `null`, `""` or nothing beside tool calls, and send back answers that were empty. */
function readAssistantText(value: unknown, param: string): string {
  if (isAbsent(value)) return "";
  if (typeof value === "string") return value;
  return readParts(value, param, ["text", "refusal"]).join("");
}

function readToolCall(fields: Fields, param: string): ToolCall {
  const id = readString(fields["id"], `${param}.id`);
  if (id === "") throw invalidField(`${param}.id`, "must not be empty.");
  const type = isAbsent(fields["type"]) ? "function" : readString(fields["type"], `${param}.type`);
  if (type !== "function" && type !== "custom")
    throw invalidField(`${param}.type`, `must be "function" or "custom", not ${quote(type)}.`);
  const called = readObject(fields[type], `${param}.${type}`);
  const name = readString(called["name"], `${param}.${type}.name`);
  return {
    type: "tool-call",
    id,
    name,
    arguments:
      type === "function"
        ? readString(called["arguments"], `${param}.function.arguments`)
        : buildCustomToolArguments(readString(called["input"], `${param}.custom.input`)),
  };
}
