import type { Finish, GenerationEvent } from "../../src/conversation/generation-event.ts";
import { Failure, type FailureCode, type FailureFacts } from "../../src/failure.ts";
import { openGenerationCollector } from "../../src/conversation/collect-generation.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { openContext, testReasoning } from "./context.ts";
import { caseFiles, isRecord, readJson, readText, type JsonRecord } from "./files.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import { ensureBody, ensureFrames } from "../wire/ensure-wire.ts";

/** One line of an events file. */
export type Step =
  | GenerationEvent
  | { readonly type: "keepalive" }
  | ({ readonly type: "finish" } & Finish)
  | {
      readonly type: "failure";
      readonly code: FailureCode;
      readonly message: string;
      readonly tokens?: { readonly sent: number; readonly maximum: number };
    };

const userSays = [{ role: "user", content: "Hello" }];
const plainRequests: Readonly<Record<WireFormatName, JsonRecord>> = {
  "chat-completions": {
    model: "service-llm",
    messages: userSays,
    stream: true,
    stream_options: { include_usage: true },
  },
  responses: { model: "service-llm", input: "Hello", stream: true },
  messages: { model: "service-llm", max_tokens: 1024, messages: userSays, stream: true },
};

/** The request that a generation case answers. */
export function requestOf(caseId: string, format: WireFormatName): JsonRecord {
  const options = caseFiles("generations").find(
    (file) => file.caseId === caseId && file.kind === "options",
  );
  const more = options === undefined ? undefined : readJson(options)[format];
  return { ...plainRequests[format], ...(isRecord(more) ? more : {}) };
}

/** The plain request of a format with some fields changed. */
export function plainRequest(format: WireFormatName, changes: JsonRecord = {}): JsonRecord {
  return { ...plainRequests[format], ...changes };
}

/** The lines of a case's events file. */
export function readSteps(caseId: string): readonly Step[] {
  const file = caseFiles("generations").find(
    (candidate) => candidate.caseId === caseId && candidate.kind === "events",
  );
  if (file === undefined) throw new Error(`${caseId} has no events`);
  // The files are this project's own; the event order check of the tests judges them.
  return readText(file)
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Step);
}

/** The events among steps. */
export function eventsOf(steps: readonly Step[]): readonly GenerationEvent[] {
  return steps.filter(
    (step): step is GenerationEvent => !isEnding(step) && step.type !== "keepalive",
  );
}

/** The finish among steps, or null for an answer that fails. */
export function finishOf(steps: readonly Step[]): Finish | null {
  const step = steps.find((candidate) => candidate.type === "finish");
  if (step === undefined) return null;
  const { type: _type, ...finish } = step;
  return finish;
}

/** The frames that a format makes of steps, one batch an event. */
export function streamOf(
  format: WireFormatName,
  request: JsonRecord,
  steps: readonly Step[],
): string {
  const parsed = wireFormats[format].parseRequest(request, testReasoning);
  const encoder = wireFormats[format].openEncoder(openContext(parsed.echo));
  let frames = encoder.open();
  for (const step of steps) {
    if (step.type === "keepalive") frames += encoder.keepalive();
    else if (step.type === "finish") frames += encoder.finish(step);
    else if (step.type === "failure") frames += encoder.fail(failureOf(step));
    else frames += encoder.encode([step]);
  }
  return ensureFrames(format, frames, { whole: steps.some(isEnding) });
}

/** The body that a format makes of steps that end well. */
export function bodyOf(
  format: WireFormatName,
  request: JsonRecord,
  steps: readonly Step[],
): unknown {
  const finish = finishOf(steps);
  if (finish === null) throw new Error("a failed answer has no body");
  const parsed = wireFormats[format].parseRequest(request, testReasoning);
  const collector = openGenerationCollector();
  collector.add(eventsOf(steps));
  const context = openContext(parsed.echo);
  return ensureBody(format, wireFormats[format].buildResponse(collector.finish(finish), context));
}

// A shortage always comes with its figures.
const budget = { amount: "0.001", left: "0.0005", endsAt: "2026-12-01T00:00:00.000Z" };
const shortage: NonNullable<FailureFacts["shortage"]> = {
  balance: "1",
  held: "0.5",
  needed: "2.25",
  affordableOutputTokens: 7,
  waitingHelps: false,
};

function failureOf(step: Extract<Step, { type: "failure" }>): Failure {
  return new Failure(step.code, step.message, {
    ...(step.tokens === undefined ? {} : { tokens: step.tokens }),
    ...(step.code === "insufficient_credit" ? { shortage } : {}),
    ...(step.code === "budget_exceeded" ? { shortage: { ...shortage, budget } } : {}),
  });
}

function isEnding(step: Step): boolean {
  return step.type === "finish" || step.type === "failure";
}
