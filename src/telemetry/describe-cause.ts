/** What a log line says of an error that was caught. */
export interface CauseDescription {
  readonly name: string;
  readonly code: string | null;
  /** Only where it cannot quote what a caller or a model wrote. */
  readonly message: string | null;
  /** What the operator can do about it, where the error says so. */
  readonly remedy?: string;
  /** Places in the source, without the message that a stack begins with. */
  readonly stack: string | null;
  readonly cause: CauseDescription | null;
}

const causesMax = 4;
const stackLinesMax = 12;
const messageCharactersMax = 500;

/** How errors are described. */
export interface CauseWording {
  readonly withMessages: boolean;
  /** Takes secrets out. */
  readonly redact: (text: string) => string;
}

/**
 * An error in words that may be kept. Messages are left out unless `withMessages`, or unless they come from the system,
 * from SQLite or from undici, or from an error with a `remedy`, whose class promises that it quotes no caller: JSON.parse,
 * for one, quotes the text that it could not read, which is a prompt.
 */
export function describeCause(error: unknown, wording: CauseWording, depth = 1): CauseDescription {
  if (!(error instanceof Error))
    return { name: typeof error, code: null, message: null, stack: null, cause: null };
  const code = textOf(error, "code");
  const remedy = textOf(error, "remedy");
  const system =
    remedy !== null ||
    textOf(error, "syscall") !== null ||
    /^(?:UND_ERR|ERR_SQLITE|SQLITE)/.test(code ?? "");
  const deeper = error.cause !== undefined && depth < causesMax;
  return {
    name: error.name,
    code,
    message:
      wording.withMessages || system
        ? wording.redact(error.message).slice(0, messageCharactersMax)
        : null,
    ...(remedy === null ? {} : { remedy: wording.redact(remedy) }),
    stack: stackPlaces(error),
    cause: deeper ? describeCause(error.cause, wording, depth + 1) : null,
  };
}

function stackPlaces(error: Error): string | null {
  const lines = (error.stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at .*:\d+:\d+\)?$/.test(line));
  return lines.length === 0 ? null : lines.slice(0, stackLinesMax).join("\n");
}

function textOf(error: Error, field: "code" | "syscall" | "remedy"): string | null {
  const value = (error as unknown as Record<string, unknown>)[field];
  return typeof value === "string" ? value.slice(0, messageCharactersMax) : null;
}
