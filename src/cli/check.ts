/** One thing that was looked at. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly message: string;
  /** What to do; null when it is well. */
  readonly fix: string | null;
}

/** A check of something that is well. */
export function passed(name: string, message: string): Check {
  return { name, ok: true, message, fix: null };
}

/** A check of something that is not, with what to do. */
export function failed(name: string, message: string, fix: string): Check {
  return { name, ok: false, message, fix };
}

// As long as the longest name: each line is written before the next check is known.
const nameCharacters = "chat-completions streamed".length;

/** A check as one line, or two when there is something to do. */
export function formatCheck({ fix, message, name, ok }: Check): string {
  const head = `${ok ? "ok  " : "FAIL"}  ${name.padEnd(nameCharacters)}  ${message}\n`;
  return fix === null ? head : `${head}      ${" ".repeat(nameCharacters)}  fix: ${fix}\n`;
}
