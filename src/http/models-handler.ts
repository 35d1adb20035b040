import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import { answerJson } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import type { Service } from "./service.ts";

// Both envelopes require a date of creation, and the service knows none of its model: this one is fixed.
const createdAtSeconds = 1_767_225_600;
const createdAt = new Date(createdAtSeconds * 1_000).toISOString().replace(".000Z", "Z");

/** The two legacy aliases, in the envelope that this caller reads. Public. */
export function handleModelList(exchange: Exchange, service: Service): void {
  const ids = service.settings.legacyAliases;
  answerJson(
    exchange,
    { status: 200 },
    exchange.shape === "messages"
      ? {
          data: ids.map(messagesModel),
          has_more: false,
          first_id: ids.at(0) ?? null,
          last_id: ids.at(-1) ?? null,
        }
      : { object: "list", data: ids.map(openaiModel) },
  );
}

/** Echoes any id: a successful lookup says nothing about what is available. Public. */
export function handleModelLookup(exchange: Exchange, encodedId: string): void {
  const id = decode(encodedId);
  if (id === null || id === "" || id.length > limits.modelNameCharactersMax)
    throw new Failure(
      "not_found",
      `There is no such model: ids have 1 to ${String(limits.modelNameCharactersMax)} characters. Use service-llm.`,
    );
  answerJson(
    exchange,
    { status: 200 },
    exchange.shape === "messages" ? messagesModel(id) : openaiModel(id),
  );
}

function decode(encodedId: string): string | null {
  try {
    return decodeURIComponent(encodedId);
  } catch {
    // A malformed percent sign.
    return null;
  }
}

function openaiModel(id: string): Record<string, unknown> {
  return { id, object: "model", created: createdAtSeconds, owned_by: "tributary" };
}

function messagesModel(id: string): Record<string, unknown> {
  return { type: "model", id, display_name: id, created_at: createdAt };
}
