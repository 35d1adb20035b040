import type { AnswerNews, RequestError, Usage } from "./conversation.ts";

/** The head that every chunk of one answer shares. */
export interface AnswerHead {
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly model: string;
}

/** News that go to the caller as text. */
export type AnswerWriter = (news: AnswerNews) => string;

/** Writes an answer as server-sent events. `usage`: in which of these the usage is. */
export function openChunks(head: AnswerHead, usage: "none" | "last" | "every"): AnswerWriter {
  const { created, id, model } = head;
  const start = { id, object: "chat.completion.chunk", created, model };
  const frame = (choices: readonly object[], used: Usage | null): string =>
    `data: ${JSON.stringify({ ...start, choices, ...(used !== null && { usage: writeUsage(used) }) })}\n\n`;
  const running = (used: Usage): Usage | null => (usage === "every" ? used : null);
  const delta = (said: object, used: Usage): string =>
    frame([{ index: 0, delta: said, finish_reason: null }], running(used));
  return (news) => {
    switch (news.type) {
      case "accepted":
        return "";
      case "progress":
        return usage === "every" ? frame([], news.usage) : "";
      case "text":
        return delta(
          news.kind === "text" ? { content: news.text } : { reasoning_content: news.text },
          news.usage,
        );
      case "call":
        return delta({ tool_calls: [writeCall(news.callId, news.name)] }, news.usage);
      case "arguments":
        return delta(
          { tool_calls: [{ index: 0, function: { arguments: news.text } }] },
          news.usage,
        );
      case "finished": {
        const last = { index: 0, delta: {}, ...writeFinish(news) };
        const lastUsage = usage === "none" ? "" : frame([], news.usage);
        return `${frame([last], running(news.usage))}${lastUsage}data: [DONE]\n\n`;
      }
      case "failed":
        return `data: ${writeError(news.error)}\n\n`;
      default:
        return news satisfies never;
    }
  };
}

/** Gathers an answer, written as one body once it is finished. A failure is the caller's to write. */
export function openBody(head: AnswerHead): AnswerWriter {
  let content = "";
  let reasoning = "";
  const calls: { name: string; id: string; arguments: string }[] = [];
  return (news) => {
    if (news.type === "text" && news.kind === "text") content += news.text;
    else if (news.type === "text") reasoning += news.text;
    else if (news.type === "call") calls.push({ id: news.callId, name: news.name, arguments: "" });
    else if (news.type === "arguments") {
      const call = calls.at(-1);
      if (call !== undefined) call.arguments += news.text;
    }
    if (news.type !== "finished") return "";
    const message = {
      role: "assistant",
      content: content === "" && calls.length > 0 ? null : content,
      ...(reasoning !== "" && { reasoning_content: reasoning }),
      ...(calls.length > 0 && {
        tool_calls: calls.map((call) => ({
          id: call.id,
          type: "function",
          function: { name: call.name, arguments: call.arguments },
        })),
      }),
    };
    const { created, id, model } = head;
    return JSON.stringify({
      id,
      object: "chat.completion",
      created,
      model,
      choices: [{ index: 0, message, ...writeFinish(news) }],
      usage: writeUsage(news.usage),
    });
  };
}

/** The body of an error. */
export function writeError({ details, message, status, type }: RequestError): string {
  return JSON.stringify({ error: { code: status, type, message, ...details } });
}

function writeCall(id: string, name: string): object {
  return { index: 0, id, type: "function", function: { name, arguments: "" } };
}

/** `stop_reason` is vLLM's word for the stop sequence that was met. */
function writeFinish({ reason, stopSequence }: Extract<AnswerNews, { type: "finished" }>): object {
  return {
    finish_reason: reason === "tool-calls" ? "tool_calls" : reason,
    ...(stopSequence !== null && { stop_reason: stopSequence }),
  };
}

function writeUsage(usage: Usage): object {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}
