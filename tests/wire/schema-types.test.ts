import { expect, test } from "vitest";
import type { z } from "zod";
import type {
  ChatCompletionBody,
  ChatCompletionChunk,
} from "../../src/formats/chat-completions/wire.ts";
import type {
  chatCompletionBodySchema,
  chatCompletionChunkSchema,
} from "./schemas/chat-completions.ts";
import type { MessagesErrorBody, OpenaiErrorBody } from "../../src/formats/error-wire.ts";
import { messagesErrorBodySchema, openaiErrorBodySchema } from "./schemas/error.ts";
import type { MessageBody, MessagesStreamEvent } from "../../src/formats/messages/wire.ts";
import type { messageBodySchema, messagesStreamEventSchema } from "./schemas/messages.ts";
import type { ResponsesBody, ResponsesStreamEvent } from "../../src/formats/responses/wire.ts";
import type { responsesBodySchema, responsesStreamEventSchema } from "./schemas/responses.ts";
import { failureKinds } from "../../src/failure.ts";

/** A type in which it shows what is optional, and `readonly` does not show. */
type Shape<Value> = Value extends readonly unknown[]
  ? { -readonly [Index in keyof Value]: Shape<Value[Index]> }
  : Value extends object
    ? {
        -readonly [Key in keyof Value]-?: {
          readonly value: Shape<Value[Key]>;
          readonly isOptional: Partial<Pick<Value, Key>> extends Pick<Value, Key> ? true : false;
        };
      }
    : Value;

/** Compiles only when two types are the same, also in what is optional. */
type Same<
  One,
  Other extends ([Shape<One>, Shape<Other>] extends [Shape<Other>, Shape<One>]
    ? unknown
    : readonly ["different", One]),
> = Other;

/** Every type here is a comparison that the compiler makes: what the schema lets through, and what `wire.ts` says. */
export interface ComparedSchemas {
  readonly chatBody: Same<ChatCompletionBody, z.infer<typeof chatCompletionBodySchema>>;
  readonly chatChunk: Same<ChatCompletionChunk, z.infer<typeof chatCompletionChunkSchema>>;
  readonly message: Same<MessageBody, z.infer<typeof messageBodySchema>>;
  readonly messagesEvent: Same<MessagesStreamEvent, z.infer<typeof messagesStreamEventSchema>>;
  readonly response: Same<ResponsesBody, z.infer<typeof responsesBodySchema>>;
  readonly responsesEvent: Same<ResponsesStreamEvent, z.infer<typeof responsesStreamEventSchema>>;
  readonly openaiError: Same<OpenaiErrorBody, z.infer<typeof openaiErrorBodySchema>>;
  readonly messagesError: Same<MessagesErrorBody, z.infer<typeof messagesErrorBodySchema>>;
}

type Schema = z.infer<typeof chatCompletionBodySchema>;
type WithoutUsage = Omit<Schema, "usage">;

/** The comparison sees what it is for: a field that is missing or renamed, also an optional one, and a word. */
export interface SeenDifferences {
  // @ts-expect-error usage
  readonly missing: Same<WithoutUsage, Schema>;
  // @ts-expect-error usages
  readonly renamed: Same<WithoutUsage & { readonly usages: Schema["usage"] }, Schema>;
  // @ts-expect-error tier?
  readonly optional: Same<Schema & { readonly tier?: string }, Schema>;
  // @ts-expect-error usage?
  readonly required: Same<WithoutUsage & Partial<Schema>, Schema>;
  // @ts-expect-error length
  readonly word: Same<"stop" | "length", "stop">;
}

test("the schemas know exactly the types and codes of the table of failures", () => {
  const kinds = Object.values(failureKinds);
  const openai = openaiErrorBodySchema.shape.error.options[0].shape;
  const messages = messagesErrorBodySchema.shape.error.options[0].shape;
  expect(new Set(openai.code.options)).toEqual(new Set(kinds.map((kind) => kind.openaiCode)));
  expect(new Set(openai.type.options)).toEqual(new Set(kinds.map((kind) => kind.openaiType)));
  expect(new Set(messages.type.options)).toEqual(new Set(kinds.map((kind) => kind.messagesType)));
});
