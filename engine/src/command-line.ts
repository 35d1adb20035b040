import { parseArgs } from "node:util";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** Variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What the program was asked to do. */
export interface Settings {
  readonly command: "serve" | "list" | "pull" | "help";
  /** A catalog name, an address or a path of a `.gguf`; null: the catalog's default. */
  readonly model: string | null;
  readonly host: string;
  readonly port: number;
  readonly dataDir: string;
  readonly cacheDir: string;
  readonly acceptedLicenses: readonly string[];
  readonly contextTokens: number | null;
  readonly slots: number | null;
  readonly threads: number | null;
  readonly gpu: boolean;
  readonly hangMs: number;
  /** Ends when standard input does: the program that started it is gone then. */
  readonly untilStdinEnds: boolean;
  readonly apiKey: string | null;
}

/** Raised for a command line that cannot be followed. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The context is no longer than this unless an option says so. */
export const contextTokensUsual = 8_192;

/** What `--help` prints. */
export const help = `Serves one language model on this machine in the Chat Completions format, through llama.cpp.

  tributary-engine [serve]      serve until it is ended
  tributary-engine list         models of the catalog, what was fetched from addresses, and what is here
  tributary-engine pull         fetch the weights, or read those that are here again and mend them

  --model MODEL            a name of the list, a path of a .gguf file, hf:OWNER/REPOSITORY/FILE.gguf, or an https://
                           address; else TRIBUTARY_MODEL, else the first of the list
  --host HOST              where to listen (127.0.0.1)
  --port PORT              0 takes a free one (8081)
  --cache-dir FOLDER       weights are kept in its folder models (TRIBUTARY_CACHE_DIR, ~/.cache/tributary)
  --data-dir FOLDER        weights in its folder models are used first (.)
  --accept-license NAME    you read the terms of that license and accept them
  --context-tokens COUNT   length of the context (what the model was trained for, at most ${String(contextTokensUsual)})
  --slots COUNT            conversations at a time (by free memory, at most 4)
  --threads COUNT          (as many as other programs leave free)
  --no-gpu                 leave GPUs alone
  --hang-seconds COUNT     /health fails after that much silence of the model (120)
  --until-stdin-ends       end when standard input does

Routes: /v1/chat/completions, /v1/models, /health (503 while the model loads), /props, /tokenize, /apply-template. With
TRIBUTARY_ENGINE_API_KEY all but /health want it as a bearer token. What happens is written to standard output, a line of
JSON each where that is no terminal.
`;

const options = {
  model: { type: "string" },
  host: { type: "string", default: "127.0.0.1" },
  port: { type: "string", default: "8081" },
  "cache-dir": { type: "string" },
  "data-dir": { type: "string", default: "." },
  "accept-license": { type: "string", multiple: true },
  "context-tokens": { type: "string" },
  slots: { type: "string" },
  threads: { type: "string" },
  "no-gpu": { type: "boolean", default: false },
  "hang-seconds": { type: "string", default: "120" },
  "until-stdin-ends": { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** Reads a command line. Throws a UsageError. */
export function readCommandLine(words: readonly string[], environment: Environment): Settings {
  const { positionals, values } = parse(words);
  const [command = "serve", ...more] = positionals;
  if (!isCommand(command) || more.length > 0)
    throw new UsageError(`There is no command ${positionals.join(" ")}; see --help.`);
  const model = values.model ?? environment["TRIBUTARY_MODEL"] ?? "";
  const cache = values["cache-dir"] ?? environment["TRIBUTARY_CACHE_DIR"] ?? "";
  return {
    command: values.help ? "help" : command,
    model: model === "" ? null : model,
    host: values.host,
    port: readCount("port", values.port) ?? 0,
    dataDir: resolve(values["data-dir"]),
    cacheDir: resolve(cache === "" ? join(homedir(), ".cache", "tributary") : cache),
    acceptedLicenses: (values["accept-license"] ?? []).map((name) => name.toLowerCase()),
    contextTokens: readCount("context-tokens", values["context-tokens"]),
    slots: readCount("slots", values.slots),
    threads: readCount("threads", values.threads),
    gpu: !values["no-gpu"],
    hangMs: readNumber("hang-seconds", values["hang-seconds"]) * 1_000,
    untilStdinEnds: values["until-stdin-ends"],
    apiKey: environment["TRIBUTARY_ENGINE_API_KEY"] ?? null,
  };
}

function parse(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${reason}; see --help.`, { cause: error });
  }
}

function isCommand(word: string): word is "serve" | "list" | "pull" {
  return word === "serve" || word === "list" || word === "pull";
}

function readCount(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const count = readNumber(name, text);
  if (Number.isInteger(count)) return count;
  throw new UsageError(`--${name} ${text}: give a whole number.`);
}

function readNumber(name: string, text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= 0) return value;
  throw new UsageError(`--${name} ${text}: give a number of at least 0.`);
}
