/** What a client of the service has. */
export interface TrialAccess {
  readonly url: string;
  readonly key: string;
}

/** How one request of a format went. */
export type TrialResult =
  | { readonly ok: true; readonly inputTokens: number; readonly outputTokens: number }
  | { readonly ok: false; readonly status: number | null; readonly message: string };

/** One format as doctor tries it. */
export interface FormatTrial {
  readonly name: string;
  readonly path: string;
  readonly body: object;
  /** Fields of the body's usage: those that add up to the input, and the output. */
  readonly usage: { readonly input: readonly string[]; readonly output: string };
  /** Whether a body has ended as an answer of this format does. */
  isWhole(answer: Readonly<Record<string, unknown>>): boolean;
  /** What only a stream that ended well has. */
  readonly terminal: RegExp;
}

const question = "Say hello.";
const outputTokensMax = 8;

/** The three formats. */
export const formatTrials: readonly FormatTrial[] = [
  {
    name: "chat-completions",
    path: "/v1/chat/completions",
    body: {
      messages: [{ role: "user", content: question }],
      max_completion_tokens: outputTokensMax,
    },
    usage: { input: ["prompt_tokens"], output: "completion_tokens" },
    isWhole: (answer) =>
      Array.isArray(answer["choices"]) &&
      typeof recordOf(answer["choices"][0])["finish_reason"] === "string",
    terminal: /^data: \[DONE\]$/m,
  },
  {
    name: "responses",
    path: "/v1/responses",
    body: { input: question, max_output_tokens: outputTokensMax },
    usage: { input: ["input_tokens"], output: "output_tokens" },
    isWhole: ({ status }) => status === "completed" || status === "incomplete",
    terminal: /^event: response\.(?:completed|incomplete)$/m,
  },
  {
    name: "messages",
    path: "/v1/messages",
    body: { messages: [{ role: "user", content: question }], max_tokens: outputTokensMax },
    usage: { input: ["input_tokens", "cache_read_input_tokens"], output: "output_tokens" },
    isWhole: (answer) => typeof answer["stop_reason"] === "string",
    terminal: /^event: message_stop$/m,
  },
];

/** One tiny generation, not streamed. */
export async function tryBody(
  trial: FormatTrial,
  access: TrialAccess,
  signal: AbortSignal,
): Promise<TrialResult> {
  return attempt(async () => {
    const response = await send(trial, { access, signal, stream: false });
    const answer = recordOf(JSON.parse(await response.text()));
    if (!response.ok) return refusal(response.status, answer);
    const usage = recordOf(answer["usage"]);
    const parts = trial.usage.input.map((field) => usage[field]);
    const inputTokens = parts.reduce<number>((sum, part) => sum + Number(part), 0);
    const outputTokens = Number(usage[trial.usage.output]);
    if (!trial.isWhole(answer) || Number.isNaN(inputTokens + outputTokens))
      return { ok: false, status: 200, message: "the answer is not whole" };
    return { ok: true, inputTokens, outputTokens };
  });
}

/** One tiny generation, streamed; tokens are not read. */
export async function tryStream(
  trial: FormatTrial,
  access: TrialAccess,
  signal: AbortSignal,
): Promise<TrialResult> {
  return attempt(async () => {
    const response = await send(trial, { access, signal, stream: true });
    const text = await response.text();
    if (!response.ok) return refusal(response.status, recordOf(JSON.parse(text)));
    if (trial.terminal.test(text)) return { ok: true, inputTokens: 0, outputTokens: 0 };
    const error = /"message":("(?:[^"\\]|\\.)*")/.exec(text)?.[1];
    const message = error === undefined ? "the stream ended without its last frame" : error;
    return { ok: false, status: 200, message };
  });
}

interface Sending {
  readonly access: TrialAccess;
  readonly signal: AbortSignal;
  readonly stream: boolean;
}

function send(trial: FormatTrial, { access, signal, stream }: Sending): Promise<Response> {
  return fetch(`${access.url}${trial.path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${access.key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ model: "service-llm", ...trial.body, ...(stream ? { stream } : {}) }),
    signal,
  });
}

async function attempt(work: () => Promise<TrialResult>): Promise<TrialResult> {
  try {
    return await work();
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return {
      ok: false,
      status: null,
      message: cause instanceof Error ? cause.message : "no answer",
    };
  }
}

function refusal(status: number, answer: Readonly<Record<string, unknown>>): TrialResult {
  const { message } = recordOf(answer["error"]);
  return { ok: false, status, message: typeof message === "string" ? message : "no reason given" };
}

/** An object's fields; none for anything else. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
