import type { WireFormat } from "../wire-format.ts";
import { parseMessagesRequest } from "./request.ts";
import { buildMessage } from "./response.ts";
import { openMessagesEncoder } from "./stream-encoder.ts";
import type { MessagesEcho } from "./wire.ts";

/** The Messages format. */
export const messagesFormat: WireFormat<MessagesEcho> = {
  name: "messages",
  parseRequest: parseMessagesRequest,
  openEncoder: openMessagesEncoder,
  buildResponse: buildMessage,
};
