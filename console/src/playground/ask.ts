/** The wire formats, as routes and receipts name them. */
export type FormatName = "chat-completions" | "responses" | "messages";

/** What a person asks for in the playground. */
export interface Question {
  readonly format: FormatName;
  readonly system: string;
  readonly text: string;
  readonly streamed: boolean;
  /** "" for the service's own allowance. */
  readonly outputTokensMax: string;
  /** A JSON list of `{name, description, parameters}`; "" for none. */
  readonly tools: string;
}

/** A tool as the person wrote it. */
export interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: unknown;
}

/** Where each format is asked. */
export const paths: Readonly<Record<FormatName, string>> = {
  "chat-completions": "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

/** Messages has to be given an allowance; the others take the service's. */
const messagesTokens = 1_024;

/** The tools of a text, or what is wrong with it. */
export function readTools(text: string): readonly Tool[] | string {
  if (text.trim() === "") return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `is no JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (!Array.isArray(value)) return "is no list: begin it with [";
  const named = value.every(
    (tool: unknown): tool is Tool =>
      typeof tool === "object" && tool !== null && "name" in tool && typeof tool.name === "string",
  );
  return named ? value : "has a tool without a name";
}

/** The body that asks it; the tools have been read. */
export function bodyOf(question: Question, tools: readonly Tool[]): Record<string, unknown> {
  const { format, streamed, system, text } = question;
  const most = question.outputTokensMax.trim() === "" ? null : Number(question.outputTokensMax);
  const stream = streamed ? { stream: true } : {};
  const user = { role: "user", content: text };
  switch (format) {
    case "chat-completions":
      return {
        model: "service-llm",
        messages: [...(system === "" ? [] : [{ role: "system", content: system }]), user],
        ...(most === null ? {} : { max_completion_tokens: most }),
        ...(tools.length === 0
          ? {}
          : { tools: tools.map((tool) => ({ type: "function", function: tool })) }),
        ...stream,
        ...(streamed ? { stream_options: { include_usage: true } } : {}),
      };
    case "responses":
      return {
        model: "service-llm",
        ...(system === "" ? {} : { instructions: system }),
        input: text,
        ...(most === null ? {} : { max_output_tokens: most }),
        ...(tools.length === 0
          ? {}
          : { tools: tools.map((tool) => ({ type: "function", ...tool })) }),
        ...stream,
      };
    case "messages":
      return {
        model: "service-llm",
        max_tokens: most ?? messagesTokens,
        ...(system === "" ? {} : { system }),
        messages: [user],
        ...(tools.length === 0
          ? {}
          : {
              tools: tools.map(({ parameters, ...tool }) => ({
                ...tool,
                input_schema: parameters ?? { type: "object", properties: {} },
              })),
            }),
        ...stream,
      };
  }
}

/** The headers that carry the key. */
export function headersOf(format: FormatName, key: string): Record<string, string> {
  return format === "messages"
    ? { "x-api-key": key, "anthropic-version": "2023-06-01" }
    : { authorization: `Bearer ${key}` };
}
