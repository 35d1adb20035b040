import type { AssistantPart, Turn } from "../../conversation/conversation.ts";
import {
  type Fields,
  invalidField,
  isAbsent,
  readContentParts,
  readObject,
  readOneOf,
  readOptionalBoolean,
  readString,
} from "../read-fields.ts";
import { type CallRegister, openCallRegister } from "../call-register.ts";
import { leftOutText, nameOfMedia, refuseMedia } from "../media-parts.ts";
import type { ReasoningVerifier } from "../wire-format.ts";
import { readToolChange } from "./tool-changes.ts";

/** What reading one message needs besides its own fields. */
interface Reading {
  readonly calls: CallRegister;
  readonly reasoning: ReasoningVerifier;
}

// It changes with every session and would defeat the engine's prefix cache.
const billingHeader = "x-anthropic-billing-header:";

/** The top-level `system`: a string, or blocks, each a turn of its own so that a blank line comes between them. */
export function readSystemTurns(value: unknown): readonly Turn[] {
  if (isAbsent(value)) return [];
  if (typeof value === "string") return [{ role: "system", text: value }];
  return readSystemTexts(value, "system").map((text) => ({ role: "system", text }));
}

/** Reads `messages` in order. An assistant message that says nothing is no turn. */
export function readMessagesTurns(
  items: readonly unknown[],
  reasoning: ReasoningVerifier,
): readonly Turn[] {
  const reading: Reading = { calls: openCallRegister(), reasoning };
  return items.flatMap((item, index) => {
    const param = `messages[${String(index)}]`;
    return readMessage(readObject(item, param), param, reading);
  });
}

function readMessage(fields: Fields, param: string, reading: Reading): readonly Turn[] {
  const role = readOneOf(fields["role"], `${param}.role`, ["user", "assistant", "system"]);
  const content = fields["content"];
  const at = `${param}.content`;
  switch (role) {
    case "system": {
      const text = typeof content === "string" ? content : readSystemMessage(content, at);
      return [{ role, text }];
    }
    case "user":
      return typeof content === "string"
        ? [{ role, text: content }]
        : readUser(readBlocks(content, at), at, reading.calls);
    case "assistant": {
      const parts: readonly AssistantPart[] =
        typeof content === "string"
          ? [{ type: "text", text: content }]
          : readBlocks(content, at).flatMap((block, index) =>
              readAssistantBlock(block, `${at}[${String(index)}]`, reading),
            );
      const joined = joinTexts(parts);
      return joined.length === 0 ? [] : [{ role, parts: joined }];
    }
    default:
      return role satisfies never;
  }
}

function readBlocks(value: unknown, param: string): readonly Fields[] {
  return readContentParts(value, param, "blocks").map((item, index) =>
    readObject(item, `${param}[${String(index)}]`),
  );
}

/** The texts of a system message, joined, and a line for every tool that it adds or removes. */
function readSystemMessage(value: unknown, param: string): string {
  let text = "";
  const changes: string[] = [];
  for (const [index, block] of readBlocks(value, param).entries()) {
    const at = `${param}[${String(index)}]`;
    const type = readOneOf(block["type"], `${at}.type`, ["text", "tool_addition", "tool_removal"]);
    const line = type === "text" ? readSystemText(block, at) : readToolChange(type, block, at);
    if (type === "text") text += line ?? "";
    else if (line !== null) changes.push(line);
  }
  return [...(text === "" ? [] : [text]), ...changes].join("\n");
}

/** null: the block is not meant for the model. */
function readSystemText(block: Fields, param: string): string | null {
  const text = readString(block["text"], `${param}.text`);
  return text.startsWith(billingHeader) ? null : text;
}

function readSystemTexts(value: unknown, param: string): readonly string[] {
  return readBlocks(value, param)
    .map((block, index) => {
      const at = `${param}[${String(index)}]`;
      readOneOf(block["type"], `${at}.type`, ["text"]);
      return readSystemText(block, at);
    })
    .filter((text) => text !== null);
}

/** Results come first, as they answer the turn before; then everything that the user says, as one turn. */
function readUser(blocks: readonly Fields[], param: string, calls: CallRegister): readonly Turn[] {
  const results: Turn[] = [];
  const texts: string[] = [];
  for (const [index, block] of blocks.entries()) {
    const at = `${param}[${String(index)}]`;
    const media = nameOfMedia(block);
    if (media !== null) return refuseMedia(media, at);
    const type = readOneOf(block["type"], `${at}.type`, ["text", "tool_result"]);
    if (type === "text") texts.push(readString(block["text"], `${at}.text`));
    else results.push(readToolResult(block, at, calls));
  }
  const text = texts.join("");
  return results.length > 0 && text === "" ? results : [...results, { role: "user", text }];
}

function readToolResult(block: Fields, param: string, calls: CallRegister): Turn {
  const callId = readString(block["tool_use_id"], `${param}.tool_use_id`);
  calls.ensureAnswers(callId, { param: `${param}.tool_use_id`, item: param });
  const isError = readOptionalBoolean(block["is_error"], `${param}.is_error`) ?? false;
  const content = block["content"];
  const text =
    typeof content === "string"
      ? content
      : readContentParts(content ?? [], `${param}.content`, "blocks")
          .map((item, index) => {
            const at = `${param}.content[${String(index)}]`;
            return readResultBlock(readObject(item, at), at);
          })
          .join("\n");
  // The conversation has no flag for a failed call, so the text says it.
  return { role: "tool", callId, text: isError && text === "" ? "error" : text };
}

function readResultBlock(block: Fields, param: string): string {
  const media = nameOfMedia(block);
  if (media !== null) return leftOutText(media);
  const type = readOneOf(block["type"], `${param}.type`, [
    "text",
    "tool_reference",
    "search_result",
  ]);
  switch (type) {
    case "text":
      return readString(block["text"], `${param}.text`);
    case "tool_reference":
      return `Tool available: ${readString(block["tool_name"], `${param}.tool_name`)}`;
    case "search_result":
      return readSearchResult(block, param);
    default:
      return type satisfies never;
  }
}

/** A result of the client's own search, as text: refusing it would end the session, as the history repeats it. */
function readSearchResult(block: Fields, param: string): string {
  const texts = readSystemTexts(block["content"], `${param}.content`);
  const head = [block["title"], block["source"]].filter((text) => typeof text === "string");
  return [...head, ...texts].join("\n");
}

function readAssistantBlock(
  block: Fields,
  param: string,
  { calls, reasoning }: Reading,
): readonly AssistantPart[] {
  const type = readOneOf(block["type"], `${param}.type`, [
    "text",
    "tool_use",
    "thinking",
    "redacted_thinking",
  ]);
  switch (type) {
    case "text":
      return [{ type, text: readString(block["text"], `${param}.text`) }];
    case "tool_use":
      return [readToolUse(block, param, calls)];
    case "thinking": {
      const text = readString(block["thinking"], `${param}.thinking`);
      const signature = block["signature"];
      const ours = typeof signature === "string" && reasoning.verify(text, signature);
      return ours ? [{ type: "reasoning", text }] : [];
    }
    case "redacted_thinking":
      return [];
    default:
      return type satisfies never;
  }
}

function readToolUse(block: Fields, param: string, calls: CallRegister): AssistantPart {
  const id = readString(block["id"], `${param}.id`);
  if (id === "") throw invalidField(`${param}.id`, "must not be empty.");
  const name = readString(block["name"], `${param}.name`);
  calls.add(id);
  // The SDK allows any JSON here, and what a model once wrote must be able to come back.
  const input = isAbsent(block["input"]) ? {} : block["input"];
  return { type: "tool-call", id, name, arguments: JSON.stringify(input) };
}

/** Text blocks that follow one another are one text; empty ones vanish. */
function joinTexts(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  const joined: AssistantPart[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.type !== "text" || last?.type !== "text") {
      if (part.type === "tool-call" || part.text !== "") joined.push(part);
      continue;
    }
    joined[joined.length - 1] = { type: "text", text: last.text + part.text };
  }
  return joined;
}
