import type { formats, TestService } from "../service/start-service.ts";
import type { Capability, Particular } from "./capabilities.ts";

/** Where a vendor's client connects, and as whom. */
export interface Connection {
  /** The service's address without `/v1`, or something wrong of that kind. */
  readonly url: string;
  readonly key: string;
  readonly maxRetries: number;
}

/** What an application asks. */
export interface Question {
  readonly prompt: string;
  /** Offers the tool `weather`. */
  readonly tools?: boolean;
  readonly signal?: AbortSignal;
  /** Hears every piece of text as it arrives, of a stream. */
  readonly onText?: (text: string) => void;
}

/** What an application sees of an answer. */
export interface SeenAnswer {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly SeenCall[];
  readonly finish: string | null | undefined;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** The vendor's own object, without ids and times; what the stream gives equals what the body gives. */
  readonly vendor: unknown;
}

/** A call as an application gets it, the arguments parsed. */
export interface SeenCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

/** What an application sees of an error. */
export interface SeenError {
  readonly status: number | undefined;
  readonly name: string;
  readonly message: string;
  readonly retryAfter: string | null | undefined;
  readonly requestId: string | null | undefined;
}

/** A vendor's client, spoken to in its own way. */
export interface ConnectedClient {
  whole(question: Question): Promise<SeenAnswer>;
  /** Throws whatever the client throws or reports in mid-stream. */
  streamed(question: Question): Promise<SeenAnswer>;
  /** Asks for something that is not offered. */
  askForTheImpossible(): Promise<unknown>;
  /** Each runs `weather` until there is a text, in another way that the vendor offers, and resolves with the text. */
  readonly loops: Readonly<Record<string, (prompt: string) => Promise<string | null>>>;
  /** Asks one after the other in one conversation, kept as its applications keep it; resolves with the texts. */
  converse(prompts: readonly string[]): Promise<readonly (string | null)[]>;
  /** Ids of the models, of a client that does not lack it. */
  listModels?(): Promise<readonly string[]>;
  /** Tokens of a prompt as the service counts them, of a client that does not lack it. */
  countTokens?(prompt: string): Promise<number>;
}

/** The statuses of which a client's class of error is known. */
export type ErrorStatus = 400 | 401 | 402 | 403 | 404 | 413 | 429 | 502 | 503;

/** One vendor's client and what is particular about it. */
export interface ClientKind {
  readonly name: string;
  readonly format: (typeof formats)[number]["name"];
  readonly errorNames: Readonly<Record<ErrorStatus, string>>;
  /** The field at fault in `askForTheImpossible`, as the message or `param` names it. */
  readonly impossibleField: string;
  /** Whether a thought comes back to the deployment in the next request of each loop. */
  readonly loopsReturnReasoning: Readonly<Record<string, boolean>>;
  /** How the client says that an answer stopped at its end, at the limit, for calls; null where it does not say. */
  readonly finishes: {
    readonly stop: string;
    readonly length: string;
    readonly calls: string;
  } | null;
  /** Whether it parses the arguments of a call and writes them anew when they go back. */
  readonly parsesCalls: boolean;
  /** What the client does not have or do by its nature, and why; the table shows it. */
  readonly lacks: Partial<Readonly<Record<Capability | Particular, string>>>;
  connect(connection: Connection): ConnectedClient;
  describeError(error: unknown): SeenError;
}

/** A client of the service as its first account, without retries, unless something else is said. */
export function connectTo(
  kind: ClientKind,
  service: TestService,
  different: Partial<Connection> = {},
): ConnectedClient {
  return kind.connect({
    url: service.url,
    key: service.key,
    maxRetries: 0,
    ...different,
  });
}

/** Both ways to ask. */
export const modes = ["whole", "streamed"] as const;

/** What a promise rejects with; throws when it does not. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

/** The tool that tests offer: what it is called with is JSON with a city. */
export const weather = {
  name: "weather",
  description: "Tells the weather of a city",
  schema: {
    type: "object" as const,
    properties: { city: { type: "string" as const } },
    required: ["city"],
    additionalProperties: false,
  },
  run: (input: { readonly city: string }): string => `${input.city}: sun, 21 degrees`,
};

/** The arguments of a call of that tool. */
export function parseCity(text: string): { readonly city: string } {
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed === "object" && parsed !== null && "city" in parsed) {
    if (typeof parsed.city === "string") return { city: parsed.city };
  }
  throw new Error(`no city in ${text}`);
}
