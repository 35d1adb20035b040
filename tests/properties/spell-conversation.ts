import type {
  AssistantPart,
  Conversation,
  GenerationOptions,
  Tool,
  ToolChoice,
  Turn,
} from "../../src/conversation/conversation.ts";
import type { ReasoningSigner, WireFormatName } from "../../src/formats/wire-format.ts";
import type { JsonRecord } from "../cases/files.ts";

/** What a client has to say, in no format. */
export interface Said {
  readonly conversation: Conversation;
  readonly options: GenerationOptions;
  readonly model: string;
  readonly stream: boolean;
  readonly outputTokens: number | null;
}

/**
 * The body in which a client of a format says it; reasoning as this service had sealed it there. For example, user "Hi" and system
 * "Be brief." in Responses: `{"instructions": "Be brief.", "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]}`
 * and the rest that was said.
 */
export function spellConversation(
  format: WireFormatName,
  said: Said,
  reasoning: ReasoningSigner,
): JsonRecord {
  return spellings[format](said, reasoning);
}

type Spelling = (said: Said, reasoning: ReasoningSigner) => JsonRecord;

const spellings: Readonly<Record<WireFormatName, Spelling>> = {
  "chat-completions": spellChat,
  responses: spellResponses,
  messages: spellMessages,
};

/** A body without the fields of which nothing was said. */
function given(fields: JsonRecord): JsonRecord {
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
    ),
  );
}

function spellChat({ conversation, options, model, stream, outputTokens }: Said): JsonRecord {
  const { parallelToolCalls, toolChoice, tools, turns } = conversation;
  return given({
    model,
    stream,
    messages: turns.map(chatMessage),
    tools: tools.map(({ name, ...tool }) => ({
      type: "function",
      function: { name, ...describe(tool, "parameters") },
    })),
    tool_choice: openaiToolChoice(toolChoice, (name) => ({ type: "function", function: { name } })),
    parallel_tool_calls: parallelToolCalls,
    temperature: options.temperature,
    top_p: options.topP,
    max_completion_tokens: outputTokens,
  });
}

function chatMessage(turn: Turn): JsonRecord {
  if (turn.role === "tool") return { role: "tool", tool_call_id: turn.callId, content: turn.text };
  if (turn.role !== "assistant") return { role: turn.role, content: turn.text };
  const message: JsonRecord = { role: "assistant", content: null };
  const calls: JsonRecord[] = [];
  for (const part of turn.parts) {
    if (part.type === "text") message["content"] = part.text;
    else if (part.type === "reasoning") message["reasoning_content"] = part.text;
    else
      calls.push({
        id: part.id,
        type: "function",
        function: { name: part.name, arguments: part.arguments },
      });
  }
  return calls.length === 0 ? message : { ...message, tool_calls: calls };
}

function describe(tool: Omit<Tool, "name">, schema: string): JsonRecord {
  return {
    ...(tool.description === null ? {} : { description: tool.description }),
    ...(tool.parameters === null ? {} : { [schema]: tool.parameters }),
    ...(tool.strict === undefined ? {} : { strict: tool.strict }),
  };
}

function openaiToolChoice(choice: ToolChoice, named: (name: string) => JsonRecord): unknown {
  if (choice.type === "tool") return named(choice.name);
  return choice.type === "auto" ? null : choice.type;
}

function spellResponses(
  { conversation, options, model, stream, outputTokens }: Said,
  reasoning: ReasoningSigner,
): JsonRecord {
  const { parallelToolCalls, toolChoice, tools, turns } = conversation;
  const [first, ...rest] = turns;
  const leads = first?.role === "system";
  return given({
    model,
    stream,
    instructions: leads ? first.text : null,
    input: (leads ? rest : turns).flatMap((turn) => responsesItems(turn, reasoning)),
    tools: tools.map(({ name, ...tool }) => ({
      type: "function",
      name,
      ...describe(tool, "parameters"),
    })),
    tool_choice: openaiToolChoice(toolChoice, (name) => ({ type: "function", name })),
    parallel_tool_calls: parallelToolCalls,
    temperature: options.temperature,
    top_p: options.topP,
    max_output_tokens: outputTokens,
  });
}

function responsesItems(turn: Turn, reasoning: ReasoningSigner): readonly JsonRecord[] {
  switch (turn.role) {
    case "tool":
      return [{ type: "function_call_output", call_id: turn.callId, output: turn.text }];
    case "assistant":
      return turn.parts.map((part) => responsesItem(part, reasoning));
    case "system":
      return [{ role: "developer", content: turn.text }];
    case "user":
      return [{ role: "user", content: [{ type: "input_text", text: turn.text }] }];
    default:
      return turn satisfies never;
  }
}

function responsesItem(part: AssistantPart, reasoning: ReasoningSigner): JsonRecord {
  switch (part.type) {
    case "reasoning":
      return { type: "reasoning", summary: [], encrypted_content: reasoning.seal(part.text) };
    case "text":
      return {
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: part.text, annotations: [] }],
      };
    case "tool-call":
      return {
        type: "function_call",
        call_id: part.id,
        name: part.name,
        arguments: part.arguments,
      };
    default:
      return part satisfies never;
  }
}

function spellMessages(
  { conversation, options, model, stream, outputTokens }: Said,
  reasoning: ReasoningSigner,
): JsonRecord {
  const { tools, turns } = conversation;
  const [first, ...rest] = turns;
  const leads = first?.role === "system";
  return given({
    model,
    stream,
    system: leads ? [{ type: "text", text: first.text }] : null,
    messages: joinResults((leads ? rest : turns).map((turn) => messagesMessage(turn, reasoning))),
    tools: tools.map(({ name, ...tool }) => ({ name, ...describe(tool, "input_schema") })),
    tool_choice: messagesToolChoice(conversation),
    temperature: options.temperature,
    top_p: options.topP,
    max_tokens: outputTokens,
  });
}

interface Message {
  readonly role: string;
  readonly content: readonly JsonRecord[];
}

function messagesMessage(turn: Turn, reasoning: ReasoningSigner): Message {
  switch (turn.role) {
    case "tool":
      return {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: turn.callId, content: turn.text }],
      };
    case "assistant":
      return { role: turn.role, content: turn.parts.map((part) => block(part, reasoning)) };
    case "system":
    case "user":
      return { role: turn.role, content: [{ type: "text", text: turn.text }] };
    default:
      return turn satisfies never;
  }
}

/** Clients of this format send the results of one answer together. */
function joinResults(messages: readonly Message[]): readonly Message[] {
  const joined: Message[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last !== undefined && isResults(last) && isResults(message))
      joined[joined.length - 1] = { ...last, content: [...last.content, ...message.content] };
    else joined.push(message);
  }
  return joined;
}

function isResults({ content }: Message): boolean {
  return content[0]?.["type"] === "tool_result";
}

function block(part: AssistantPart, reasoning: ReasoningSigner): JsonRecord {
  switch (part.type) {
    case "reasoning": {
      const signer = reasoning.openSigner();
      signer.update(part.text);
      return { type: "thinking", thinking: part.text, signature: signer.finish() };
    }
    case "text":
      return { type: "text", text: part.text };
    case "tool-call":
      return { type: "tool_use", id: part.id, name: part.name, input: JSON.parse(part.arguments) };
    default:
      return part satisfies never;
  }
}

function messagesToolChoice({ parallelToolCalls, toolChoice }: Conversation): unknown {
  const parallel =
    parallelToolCalls === null ? {} : { disable_parallel_tool_use: !parallelToolCalls };
  if (toolChoice.type === "tool") return { type: "tool", name: toolChoice.name, ...parallel };
  const type = toolChoice.type === "required" ? "any" : toolChoice.type;
  return type === "auto" && parallelToolCalls === null ? null : { type, ...parallel };
}
