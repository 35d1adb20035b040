import pino, { type Logger } from "pino";
import { formatPretty } from "./pretty-line.ts";

/** Where lines go. */
export interface LogDestination {
  write(text: string): void;
  /** Writes what is left at once, for a process that ends now; a write under way may come out after it. */
  flush(): void;
}

/** How lines are written. */
export interface LogOptions {
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "silent";
  /** `auto`: pretty when `terminal`, JSON lines otherwise. */
  readonly format: "auto" | "json" | "pretty";
  readonly terminal: boolean;
  readonly destination: LogDestination;
  /** The number that each line names; absent: the service is one process. */
  readonly process?: number;
}

/** The log of a process. */
export interface Log {
  readonly lines: Logger;
  readonly pretty: boolean;
  /** Text that is shown whatever the level is, in order with the other lines. */
  print(text: string): void;
  flush(): void;
}

/** Opens the log. No line has the process id or the host: the collector of the lines knows both better. */
export function openLog(options: LogOptions): Log {
  const { level, format, terminal, destination } = options;
  const pretty = format === "pretty" || (format === "auto" && terminal);
  const lines = pino(
    {
      level,
      base: options.process === undefined ? null : { process: options.process },
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: "event",
      formatters: { level: (label) => ({ level: label }) },
    },
    pretty
      ? { write: (line: string) => destination.write(formatPretty(line, terminal)) }
      : destination,
  );
  return {
    lines,
    pretty,
    print: (text) => destination.write(text),
    flush: () => destination.flush(),
  };
}

/** Standard output: nothing waits for a slow reader. Disposing it waits until everything is written, in order. */
export function openStandardOutput(): LogDestination & AsyncDisposable {
  const output = pino.destination({ dest: 1, sync: false });
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  output.once("close", end);
  let open = true;
  output.on("error", () => {
    // The reader of the log has left, as with `| head`; the service goes on.
    open = false;
    output.destroy();
    end();
  });
  return {
    write(text) {
      if (open) output.write(text);
    },
    flush() {
      try {
        output.flushSync();
      } catch {
        // Not open yet, or the reader has gone: nothing is left to do at the end of a process.
      }
    },
    async [Symbol.asyncDispose]() {
      if (open) output.end();
      open = false;
      await ended;
    },
  };
}
