import { type AnyValue, type Logger, SeverityNumber } from "@opentelemetry/api";
import type { Lines } from "../lines.ts";
import type { RequestSpans } from "./request-spans.ts";

const severities = {
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
} as const;

/** What is done beside writing a line. */
export interface LineParts {
  /** null: lines are not sent. */
  readonly logger: Logger | null;
  readonly spans: Pick<RequestSpans, "traceOf"> | null;
}

/**
 * The same lines: about a request they have its `traceId`, and from `info` on they are sent as records, too. Those below
 * may quote a prompt, and where they are written, what an error says may as well: its words are left out then.
 */
export function sendLines(lines: Lines, { logger, spans }: LineParts): Lines {
  const withMessages = lines.isLevelEnabled("debug");
  function write(level: keyof typeof severities, fields: object, event: string): void {
    const { requestId } = fields as { readonly requestId?: unknown };
    const trace = typeof requestId === "string" ? spans?.traceOf(requestId) : undefined;
    lines[level](trace === undefined ? fields : { ...fields, traceId: trace.traceId }, event);
    if (logger === null || !lines.isLevelEnabled(level)) return;
    // As many lines as requests: of those whose trace is not sampled only what went wrong is sent.
    if (level === "info" && trace?.isSampled === false) return;
    logger.emit({
      severityNumber: severities[level],
      severityText: level,
      body: event,
      eventName: event,
      attributes: attributesOf(fields, withMessages),
      ...(trace === undefined ? {} : { context: trace.context }),
    });
  }
  return {
    isLevelEnabled: (level) => lines.isLevelEnabled(level),
    debug: (fields, event) => lines.debug(fields, event),
    info: (fields, event) => write("info", fields, event),
    warn: (fields, event) => write("warn", fields, event),
    error: (fields, event) => write("error", fields, event),
  };
}

function attributesOf(fields: object, withMessages: boolean): Record<string, AnyValue> {
  const kept = Object.entries(fields)
    .filter(([name, value]) => value !== null && !(withMessages && name === "message"))
    .map(([name, value]: [string, unknown]) => [name, valueOf(value, withMessages)]);
  return Object.fromEntries(kept) as Record<string, AnyValue>;
}

function valueOf(value: unknown, withMessages: boolean): AnyValue {
  // Fields of lines are plain values, and objects of them.
  return typeof value === "object" && value !== null ? attributesOf(value, withMessages) : value;
}
