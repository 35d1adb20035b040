import { parseCredit } from "../admission/price.ts";
import { Failure } from "../failure.ts";
import type { PageStart } from "../ledger/administration/lists.ts";
import { isTimeZone } from "../ledger/periods.ts";
import { isStorable, unstorableWords } from "../ledger/storable-text.ts";
import { groupingsOf, type UsageGrouping, usageGroupings } from "../ledger/usage/usage-query.ts";
import { limits } from "../limits.ts";
import type { Exchange } from "./exchange.ts";

/** What the parameters of a request's query say; a wrong one is a Failure that names it. */
export interface QueryReader {
  text(name: string): string | null;
  choice<const Choice extends string>(name: string, choices: readonly Choice[]): Choice | null;
  /** Milliseconds since 1970. */
  time(name: string): number | null;
  nanos(name: string): bigint | null;
  rows(): number;
  /** The same of sums of usage, which are one answer where they fit. */
  usageRows(): number;
  groupings(): readonly UsageGrouping[];
  timezone(): string;
  pageStart(): PageStart | null;
  /** Of a list in the order of one number. */
  number(): number | null;
}

/** Reads a query that may have these parameters and no others. */
export function readQuery({ request }: Exchange, names: readonly string[]): QueryReader {
  const given = new URL(request.url ?? "/", "http://service").searchParams;
  for (const [name, text] of given) {
    if (!names.includes(name) || given.getAll(name).length > 1)
      throw wrong(name, `is not taken here, or twice. Send ${names.join(", ")}, each once at most`);
    if (!isStorable(text)) throw wrong(name, unstorableWords);
  }
  const text = (name: string): string | null => given.get(name);
  function rowsUpTo(most: number, usual: number): number {
    const value = text("limit") ?? String(usual);
    const rows = /^\d{1,5}$/u.test(value) ? Number(value) : 0;
    if (rows < 1 || rows > most)
      throw wrong("limit", `is a whole number from 1 to ${String(most)}`);
    return rows;
  }
  return {
    text,
    choice(name, choices) {
      const value = text(name);
      const found = choices.find((one) => one === value) ?? null;
      if (found === null && value !== null) throw wrong(name, `is one of ${choices.join(", ")}`);
      return found;
    },
    time(name) {
      const value = text(name);
      const isTime =
        value === null || /^\d{4}-\d{2}-\d{2}T[\d:.]{5,12}(?:Z|[+-]\d{2}:\d{2})$/u.test(value);
      const atMs = value === null ? 0 : Date.parse(value);
      if (!isTime || Number.isNaN(atMs))
        throw wrong(name, "is no time: write it as 2026-01-31T12:00:00Z");
      return value === null ? null : atMs;
    },
    nanos(name) {
      const value = text(name);
      const nanos = value === null ? null : parseCredit(value);
      if (value !== null && nanos === null)
        throw wrong(name, "is no amount of credits: write it as 10 or 0.25");
      return nanos;
    },
    rows: () => rowsUpTo(limits.pageRowsMax, limits.pageRowsDefault),
    usageRows: () => rowsUpTo(limits.usageRowsMax, limits.usageRowsMax),
    groupings() {
      const by = groupingsOf(text("by") ?? "day");
      if (by === null)
        throw wrong(
          "by",
          `is one of ${usageGroupings.join(", ")}, or two of them with a comma between, of which one at most is a time`,
        );
      return by;
    },
    timezone() {
      const name = text("timezone") ?? "UTC";
      if (!isTimeZone(name))
        throw wrong("timezone", "is no time zone: write it as UTC or Europe/Berlin");
      return name;
    },
    pageStart() {
      const [, atMs, id] = /^(\d{1,16})\.(\w{1,100})$/u.exec(cursorOf(text("cursor"))) ?? [];
      if (text("cursor") === null) return null;
      if (atMs === undefined || id === undefined) throw wrongCursor();
      return { atMs: Number(atMs), id };
    },
    number() {
      if (text("cursor") === null) return null;
      const [, number] = /^(\d{1,15})$/u.exec(cursorOf(text("cursor"))) ?? [];
      if (number === undefined) throw wrongCursor();
      return Number(number);
    },
  };
}

/** The cursor of the page behind a row. */
export function cursorBehind(row: string): string {
  return Buffer.from(row).toString("base64url");
}

function cursorOf(text: string | null): string {
  return Buffer.from(text ?? "", "base64url").toString("utf8");
}

function wrongCursor(): Failure {
  return wrong(
    "cursor",
    "is of no page of this list. Send the next_cursor of the page before as it came",
  );
}

function wrong(param: string, message: string): Failure {
  return new Failure("invalid_request", `\`${param}\` ${message}.`, { param });
}
