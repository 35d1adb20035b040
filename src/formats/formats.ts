import { chatCompletionsFormat } from "./chat-completions/format.ts";
import { messagesFormat } from "./messages/format.ts";
import { responsesFormat } from "./responses/format.ts";
import type { WireFormat, WireFormatName } from "./wire-format.ts";

/** Every wire format. A fourth is one folder and one line here. */
export const wireFormats: Readonly<Record<WireFormatName, WireFormat<unknown>>> = {
  "chat-completions": chatCompletionsFormat,
  responses: responsesFormat,
  messages: messagesFormat,
};
