import { styleText } from "node:util";
import { requestRow } from "./request-row.ts";

const colours: Readonly<Record<string, "gray" | "cyan" | "yellow" | "red">> = {
  trace: "gray",
  debug: "gray",
  info: "cyan",
  warn: "yellow",
  error: "red",
};

/** One JSON line of the log for human eyes: time, level, event, then the other fields. */
export function formatPretty(line: string, coloured: boolean): string {
  const { level, time, event, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const name = typeof level === "string" ? level : "info";
  const label = name.toUpperCase().padEnd(5);
  const clock = typeof time === "string" ? time.slice(11, 23) : "";
  const shown = coloured
    ? styleText(colours[name] ?? "cyan", label, { validateStream: false })
    : label;
  // Elsewhere than on a terminal width is no matter, and a collector of lines wants whole ones.
  if (coloured && event === "request") {
    const row = escaped(requestRow(fields));
    return name === "info"
      ? `${clock.slice(0, 8)} ${row}\n`
      : `${clock.slice(0, 8)} ${shown} ${row}\n`;
  }
  const words = [...fieldWords(fields, "")].join(" ");
  return `${clock} ${shown} ${showValue(event)}${words === "" ? "" : `  ${words}`}\n`;
}

function* fieldWords(fields: object, prefix: string): Generator<string> {
  for (const [name, value] of Object.entries(fields) as [string, unknown][]) {
    if (value === null || value === undefined) continue;
    if (typeof value === "object" && !Array.isArray(value))
      yield* fieldWords(value, `${prefix}${name}.`);
    else yield `${prefix}${name}=${showValue(value)}`;
  }
}

/** A route or a method is ours, an id may be anything: no text can move the cursor of a terminal. */
function escaped(row: string): string {
  return row.replaceAll(/[\p{Cc}\p{Cf}]/gu, "?");
}

/** Words as they are; anything else quoted, so that no text can move the cursor of a terminal. */
function showValue(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /^[\w./:@+,[\]{}"-]+(?: [\w./:-]+)*$/.test(text) ? text : JSON.stringify(text);
}
