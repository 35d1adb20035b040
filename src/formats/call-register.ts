import { invalidField, quote } from "./read-fields.ts";

/** Knows the calls that a conversation made so far, so that every result answers one of them. */
export interface CallRegister {
  add(callId: string): void;
  /** `param` is the field with the id, `index` the place of the item in the input. */
  ensureAnswers(callId: string, place: { readonly param: string; readonly item: string }): void;
}

/** Opens the register of one conversation. */
export function openCallRegister(): CallRegister {
  const calls = new Set<string>();
  return {
    add(callId) {
      calls.add(callId);
    },
    ensureAnswers(callId, { param, item }) {
      if (calls.has(callId)) return;
      throw invalidField(
        param,
        `${item} is the result of the call ${quote(callId)}, but no earlier call has that id. Send the assistant's call before its result.`,
      );
    },
  };
}
