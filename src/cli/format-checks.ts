import { type Check, failed, passed } from "./check.ts";
import {
  type FormatTrial,
  formatTrials,
  type TrialAccess,
  type TrialResult,
  tryBody,
  tryStream,
} from "./format-trial.ts";

/** How formats are tried. */
export interface FormatTrying {
  /** What to do about a status; null: no answer came. */
  readonly advice: (status: number | null) => string;
  readonly timeoutMs: number;
}

/** A tiny generation in each format, whole and streamed; one after another, as an account may run only so many at a time. */
export async function* checkFormats(
  access: TrialAccess,
  trying: FormatTrying,
): AsyncGenerator<Check> {
  for (const trial of formatTrials) yield await checkFormat(trial, access, trying);
}

async function checkFormat(
  trial: FormatTrial,
  access: TrialAccess,
  trying: FormatTrying,
): Promise<Check> {
  const startedAt = performance.now();
  const bodyResult = await tryBody(trial, access, AbortSignal.timeout(trying.timeoutMs));
  const bodyMs = performance.now() - startedAt;
  if (!bodyResult.ok) return formatFailed(trial.name, bodyResult, trying);
  const streamResult = await tryStream(trial, access, AbortSignal.timeout(trying.timeoutMs));
  const streamMs = performance.now() - startedAt - bodyMs;
  if (!streamResult.ok) return formatFailed(`${trial.name} streamed`, streamResult, trying);
  const tokens = `${String(bodyResult.inputTokens)} tokens in, ${String(bodyResult.outputTokens)} out`;
  return passed(
    trial.name,
    `${tokens}, ${bodyMs.toFixed(0)} ms; streamed ${streamMs.toFixed(0)} ms`,
  );
}

function formatFailed(
  name: string,
  result: TrialResult & { readonly ok: false },
  trying: FormatTrying,
): Check {
  const status = result.status === null ? "" : `${String(result.status)} `;
  return failed(name, `${status}${result.message}`, trying.advice(result.status));
}
