/** Any JSON value. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** A JSON object. */
export type JsonObject = { readonly [key: string]: JsonValue };

/** A request's content, in no vendor's format. */
export interface Conversation {
  /** The leading system texts are one turn; there is never a second system turn beside the first. */
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  /** null: the caller said nothing. */
  readonly parallelToolCalls: boolean | null;
}

/** One contribution to the conversation. Text parts are joined already, by the rule of their format. */
export type Turn =
  | { readonly role: "system"; readonly text: string }
  | { readonly role: "user"; readonly text: string }
  | { readonly role: "assistant"; readonly parts: readonly AssistantPart[] }
  | ToolResult;

/** What a tool gave back; `callId` names an earlier ToolCall. */
export interface ToolResult {
  readonly role: "tool";
  readonly callId: string;
  readonly text: string;
}

/** A piece of an assistant turn, in the order in which it was said. */
export type AssistantPart =
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "text"; readonly text: string }
  | ToolCall;

/** A call that the model made. `arguments` is text, byte for byte as the model wrote it. */
export interface ToolCall {
  readonly type: "tool-call";
  readonly id: string;
  /** The flat name under which the tool is offered. */
  readonly name: string;
  readonly arguments: string;
}

/** A tool that the client runs. Custom tools and namespaces are flattened before this point. */
export interface Tool {
  readonly name: string;
  readonly description: string | null;
  /** JSON Schema of the arguments; null when the client gave none. */
  readonly parameters: JsonObject | null;
  /** Set where the client asked that arguments keep to the schema: some engines enforce it then. Promised nowhere. */
  readonly strict?: true;
}

/** Which tool the model may or must call. */
export type ToolChoice =
  | { readonly type: "auto" }
  | { readonly type: "none" }
  | { readonly type: "required" }
  | { readonly type: "tool"; readonly name: string };

/** Everything besides the conversation that changes what the model writes; null or empty: not given. */
export interface GenerationOptions {
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly topK: number | null;
  readonly stopSequences: readonly string[];
  readonly seed: number | null;
  readonly presencePenalty: number | null;
  readonly frequencyPenalty: number | null;
  readonly reasoningEffort: string | null;
  readonly responseFormat: "text" | "json-object";
}

/** What a request that sets nothing asks for. */
export const noOptions: GenerationOptions = {
  temperature: null,
  topP: null,
  topK: null,
  stopSequences: [],
  seed: null,
  presencePenalty: null,
  frequencyPenalty: null,
  reasoningEffort: null,
  responseFormat: "text",
};
