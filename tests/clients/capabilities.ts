/** What clients are tried at, each a suite of laws and a column of the table. */
export const capabilities = [
  "text",
  "reasoning",
  "tool calls",
  "tool loop",
  "parallel tools",
  "multi-turn",
  "abort",
  "errors",
  "retries",
  "keepalive",
  "1,000 chunks",
  "models",
  "token count",
] as const;

/** One of them. */
export type Capability = (typeof capabilities)[number];

/** Smaller things that some clients do not see. */
export type Particular =
  | "a text that was cut"
  | "nothing"
  | "input tokens of a stream"
  | "reasoning back";

const lackPrefix = "lacks ";

/** The title of the test that is skipped where a client does not have something by its nature. */
export function lackTitle(name: Capability | Particular, reason: string): string {
  return `${lackPrefix}${name}: ${reason}`;
}

/** What such a title says; null of any other test, which is skipped only when something went wrong before it. */
export function lackOf(title: string): string | null {
  return title.startsWith(lackPrefix) ? title.slice(lackPrefix.length) : null;
}
