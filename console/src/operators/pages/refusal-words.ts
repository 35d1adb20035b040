import type { failureKinds } from "../../../../src/failure.ts";

type Code = keyof typeof failureKinds;

/** Why a request is refused or fails by each code, and what to do: docs/errors.md in a sentence. */
const words: Readonly<Record<Code, string>> = {
  invalid_request: "A field is missing or wrong; its caller was given the name of the field.",
  not_offered: "It asked for something that this service does not do; the caller leaves it out.",
  input_too_large: "The conversation is longer than the model's context; the caller shortens it.",
  refused_by_deployment: "The deployment refused it for a reason of its own, which the log has.",
  authentication:
    "No key, or one that is unknown or revoked. Compare it with the keys of the caller's account.",
  key_expired: "The time of the key is over. Give it more, or make another one.",
  insufficient_credit: "What it may cost at most was more than the account has left. Top it up.",
  budget_exceeded:
    "What it may cost at most was more than the key's budget leaves. Raise it, or wait.",
  account_disabled: "The account is disabled. Enable it on its page.",
  cancelled_by_operator: "An operator cancelled it while it ran. Nothing was charged.",
  key_paused: "The key is paused. Resume it on its page.",
  key_scope: "The key may not do this. Change what it may, or use another one.",
  not_found: "There is no such route. The client's base address is wrong.",
  method_not_allowed: "The route is there, but not for this method.",
  upgrade_required: "The client asked for a WebSocket; agents go on without one by themselves.",
  request_timeout: "The caller sent its request too slowly.",
  body_too_large: "The body is over 4 MiB; the caller shortens the conversation.",
  unsupported_media_type: "The caller did not send plain JSON.",
  rate_limited: "The key sent more requests in a minute than it may. Raise the limit, or wait.",
  too_many_wrong_keys: "Too many wrong keys came from this address within a minute.",
  too_many_concurrent: "The account runs as many requests as it may. Raise its limit, or wait.",
  internal: "A fault of the service. The log has the cause under the request's id.",
  deployment_failed:
    "The deployment was lost or sent nonsense. Nothing was charged; look at its log.",
  overloaded: "The deployment or the service had no room, or was not ready. Callers try again.",
  deployment_timeout: "The deployment was silent for too long. Nothing was charged.",
};

/** Why a request was refused or failed, in plain words. */
export function refusalWords(code: string): string {
  return Object.hasOwn(words, code) ? words[code as Code] : "";
}
