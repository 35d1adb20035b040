import { describeClient } from "../client-laws.ts";
import { openaiErrorNames } from "../openai.ts";
import { drivenClient, type DrivenKind, useDriver } from "./driver.ts";
import { nodeDriver } from "./node-driver.ts";

const driver = useDriver(nodeDriver("langchain.mjs"));
const lacks = {
  models: "LangChain has no call for it",
  "token count": "LangChain estimates by itself, with a tokenizer that it downloads",
};

const chat: DrivenKind = {
  name: "LangChain openai chat",
  client: "chat",
  driver,
  format: "chat-completions",
  errorNames: openaiErrorNames,
  impossibleField: "messages[0].content[0]",
  loopsReturnReasoning: { "by hand": false, "by hand, streamed": false },
  finishes: { stop: "stop", length: "length", calls: "tool_calls" },
  parsesCalls: true,
  lacks: { ...lacks, "reasoning back": "it shows a thought and does not send it back" },
  changing: [],
};

const responses: DrivenKind = {
  ...chat,
  name: "LangChain openai responses",
  client: "responses",
  format: "responses",
  impossibleField: "input[0].content[0]",
  loopsReturnReasoning: { "by hand": true, "by hand, streamed": true },
  parsesCalls: false,
  finishes: { stop: "completed", length: "max_output_tokens", calls: "completed" },
  lacks,
};

const messages: DrivenKind = {
  ...chat,
  name: "LangChain anthropic",
  client: "messages",
  format: "messages",
  errorNames: {
    400: "BadRequestError",
    401: "AuthenticationError",
    402: "APIError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    413: "APIError",
    429: "RateLimitError",
    502: "InternalServerError",
    503: "InternalServerError",
  },
  loopsReturnReasoning: responses.loopsReturnReasoning,
  finishes: { stop: "end_turn", length: "max_tokens", calls: "tool_use" },
  lacks: {
    ...lacks,
    "input tokens of a stream":
      "it keeps the estimate with which a stream begins, not the figure with which it ends",
  },
};

for (const kind of [chat, responses, messages]) describeClient(drivenClient(kind));
