import { recordOf, type TrialAccess } from "./format-trial.ts";

/** How fast a model writes. */
export type SpeedResult =
  | { readonly ok: true; readonly tokens: number; readonly tokensPerSecond: number }
  | { readonly ok: false; readonly message: string };

const question = "Write a long story about a ship and the sea, with every detail.";
const outputTokensMax = 64;

/** One streamed answer, measured from its first text to its end. `now` gives milliseconds. */
export async function trySpeed(
  access: TrialAccess,
  signal: AbortSignal,
  now: () => number,
): Promise<SpeedResult> {
  const response = await fetch(`${access.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${access.key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "service-llm",
      messages: [{ role: "user", content: question }],
      max_completion_tokens: outputTokensMax,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
    signal,
  });
  if (!response.ok || response.body === null)
    return { ok: false, message: `${String(response.status)} ${await response.text()}` };
  let text = "";
  let firstAtMs: number | null = null;
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (firstAtMs === null && /"(?:content|reasoning\w*)":"[^"]/.test(text)) firstAtMs = now();
  }
  const tokens = Number(/"completion_tokens":(\d+)/.exec(text)?.[1] ?? 0);
  if (firstAtMs === null || tokens < 2)
    return { ok: false, message: `the model wrote ${String(tokens)} tokens, too few to measure` };
  const seconds = Math.max(now() - firstAtMs, 1) / 1_000;
  // The clock starts when the first token is there.
  return { ok: true, tokens, tokensPerSecond: (tokens - 1) / seconds };
}

/** What the embedded engine runs on, from the log of its start; null for a deployment of another kind. */
export function describeEngine(lines: readonly string[]): string | null {
  const events = lines.map((line) => recordOf(JSON.parse(line)));
  const loaded = events.findLast(({ event }) => event === "model loaded");
  if (loaded === undefined) return null;
  const { build, devices, gpu, loadMs, slots, threads } = loaded;
  const place =
    typeof gpu === "string"
      ? `on the GPU (${gpu}: ${String(devices)})`
      : `on the processor with ${threads === 1 ? "1 thread" : `${String(threads)} threads`} (no GPU, or no build of the library for it)`;
  const seconds = (Number(loadMs) / 1_000).toFixed(1);
  return `${place}, ${String(build)}, ${String(slots)} slots, loaded in ${seconds} s`;
}

const loadTriesMax = 5;
const fetchTriesMax = 2;

/** Whether more waiting is of no use. Weights that do not load are read again and may be on their way once more. */
export function isGivenUp(lines: readonly string[]): boolean {
  const events = lines.map((line) => recordOf(JSON.parse(line))["event"]);
  const since = events.slice(events.lastIndexOf("weights downloading") + 1);
  const count = (name: string): number => since.filter((event) => event === name).length;
  return count("model not loaded") >= loadTriesMax || count("weights missing") >= fetchTriesMax;
}

/** The last reason that the embedded engine gave for not being there; null: none. */
export function findEngineReason(lines: readonly string[]): string | null {
  const reasons = lines.map((line) => recordOf(JSON.parse(line))["reason"]);
  return reasons.findLast((reason): reason is string => typeof reason === "string") ?? null;
}

/** Whether the last thing that went wrong was that nothing listens at the deployment's address. */
export function isNothingListening(lines: readonly string[]): boolean {
  const reason = findEngineReason(lines);
  return reason !== null && /\b(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND)\b/.test(reason);
}
