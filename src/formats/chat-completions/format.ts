import type { WireFormat } from "../wire-format.ts";
import { parseChatCompletionsRequest } from "./request.ts";
import { buildChatCompletion } from "./response.ts";
import { openChatCompletionsEncoder } from "./stream-encoder.ts";
import type { ChatCompletionsEcho } from "./wire.ts";

/** The Chat Completions format. */
export const chatCompletionsFormat: WireFormat<ChatCompletionsEcho> = {
  name: "chat-completions",
  parseRequest: parseChatCompletionsRequest,
  openEncoder: openChatCompletionsEncoder,
  buildResponse: buildChatCompletion,
};
