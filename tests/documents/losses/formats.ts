import type { Losses } from "./tables/format-losses.ts";
import { chatCompletionsLosses } from "./tables/chat-completions.ts";
import { messagesLosses } from "./tables/messages.ts";
import { responsesLosses } from "./tables/responses.ts";
import type { WireFormatName } from "../../../src/formats/wire-format.ts";

/** The table of each format. */
export const formatLosses: Readonly<Record<WireFormatName, Losses>> = {
  "chat-completions": chatCompletionsLosses,
  responses: responsesLosses,
  messages: messagesLosses,
};

/** A row of one of the tables. */
export type LossTopic =
  | keyof typeof chatCompletionsLosses
  | keyof typeof responsesLosses
  | keyof typeof messagesLosses;

/** The fields of a format's body that change nothing whatever they hold. */
export function ignoredFields(format: WireFormatName): readonly string[] {
  return Object.values(formatLosses[format])
    .filter(({ fate, when }) => fate === "ignored" && when === null)
    .flatMap(({ fields }) => fields.filter((field) => /^\w+$/u.test(field)));
}
