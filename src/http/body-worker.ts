import { parentPort } from "node:worker_threads";
import { prepareOpenaiPrompt } from "../deployment/openai-compatible/openai-prompt.ts";
import type { PromptSettings } from "../deployment/deployment.ts";
import { failureFromUnknown, failureToData } from "../failure.ts";
import { limits } from "../limits.ts";
import { wireFormats } from "../formats/formats.ts";
import { parseCountTokens } from "../formats/messages/count-tokens.ts";
import { openReasoningSeal } from "../seal/reasoning-seal.ts";
import type { BodyTaskAnswer, CountedTokens, SealedBodyTask } from "./body-tasks.ts";
import { parseJsonBody } from "./parse-json-body.ts";
import { noOptions } from "../conversation/conversation.ts";
import { prepareRequest, type PreparedRequest, type PromptBuilder } from "./prepare-request.ts";

// The second, small composition root: what takes long on large input runs here, off the event loop of the streams.

const port = parentPort;
if (port === null) throw new Error("body-worker.ts runs as a worker thread only");

port.on("message", (task: SealedBodyTask) => {
  void answer(task).then(({ reply, transfer }) => port.postMessage(reply, transfer));
});

type Reply = { readonly reply: BodyTaskAnswer; readonly transfer: ArrayBuffer[] };

async function answer(task: SealedBodyTask): Promise<Reply> {
  try {
    if (task.type === "count-tokens") {
      const counted = await countTokens(task);
      return { reply: { type: "counted", counted }, transfer: [] };
    }
    const prepared = prepare(task);
    const transfer = prepared.prompt === null ? [] : [prepared.prompt.bytes.buffer];
    return { reply: { type: "prepared", prepared }, transfer };
  } catch (error) {
    const failure = failureToData(failureFromUnknown(error));
    return { reply: { type: "failed", failure }, transfer: [] };
  } finally {
    // What was made of them holds none of the bytes, and V8 would let 64 MiB of them wait for a collection in each thread.
    task.bytes.buffer.transfer(0);
  }
}

function prepare(task: SealedBodyTask & { readonly type: "prepare" }): PreparedRequest {
  const prepared = prepareRequest(task.bytes, {
    format: wireFormats[task.format],
    reasoning: openReasoningSeal(task.sealKeys, task.accountId),
    buildPrompt: promptBuilder(task.promptSettings),
    labelFields: task.labelFields,
  });
  const bytes = prepared.prompt?.bytes;
  // Memory that is shared with other buffers cannot be handed over.
  return bytes === undefined || bytes.byteLength === bytes.buffer.byteLength
    ? prepared
    : { ...prepared, prompt: { bytes: bytes.slice() } };
}

function promptBuilder(promptSettings: PromptSettings | null): PromptBuilder {
  if (promptSettings === null) return null;
  return (conversation, options) => prepareOpenaiPrompt(promptSettings, conversation, options);
}

async function countTokens(
  task: SealedBodyTask & { readonly type: "count-tokens" },
): Promise<CountedTokens> {
  const countable = parseCountTokens(
    parseJsonBody(task.bytes),
    openReasoningSeal(task.sealKeys, task.accountId),
  );
  // Loaded for the first that can be counted: the vocabulary takes time and memory that most processes never need.
  const { countTextTokens } = await import("./count-text-tokens.ts");
  const written = promptBuilder(task.promptSettings)?.(countable.conversation, noOptions) ?? null;
  const isAsked = written !== null && written.bytes.byteLength <= limits.countTokensAskBytesMax;
  return { tokens: countTextTokens(countable), prompt: isAsked ? written : null };
}
