import { z } from "@hono/zod-openapi";
import type { PageStart } from "../ledger/administration/lists.ts";
import { isStorable } from "../ledger/storable-text.ts";
import { limits } from "../limits.ts";
import { ProblemError } from "./problem.ts";

/** The parameters of every list. */
export const pageParameters = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(limits.pageRowsMax)
    .default(limits.pageRowsDefault)
    .openapi({ description: "rows of the page" }),
  cursor: z
    .string()
    .min(1)
    .optional()
    .openapi({ description: "`next_cursor` of the page before; absent: the first page" }),
};

/** A page of rows; `next_cursor` is null where there are no more. */
export function pageSchema<Row extends z.ZodType>(row: Row, title: string) {
  return z
    .object({ data: z.array(row), next_cursor: z.string().nullable() })
    .openapi(`${title}Page`);
}

/** Where a page begins, from its cursor. */
export function startOf(cursor: string | undefined): PageStart | null {
  if (cursor === undefined) return null;
  const [, atMs, id] = /^(\d{1,16})\.(\w{1,100})$/.exec(decode(cursor)) ?? [];
  if (atMs === undefined || id === undefined) throw wrongCursor();
  return { atMs: Number(atMs), id };
}

/** The same of a list that is in the order of one number. */
export function numberOfCursor(cursor: string | undefined): number | null {
  if (cursor === undefined) return null;
  const [, number] = /^(\d{1,15})$/.exec(decode(cursor)) ?? [];
  if (number === undefined) throw wrongCursor();
  return Number(number);
}

/** The same of a list that is in the order of its names. */
export function nameOfCursor(cursor: string | undefined): string | null {
  if (cursor === undefined) return null;
  const name = decode(cursor);
  const isName = name !== "" && !name.includes("\uFFFD") && isStorable(name);
  if (!isName || name.length > limits.nameCharactersMax) throw wrongCursor();
  return name;
}

/** One page of rows, of which one more was asked for than it has. */
export function pageOf<Row, Json>(
  rows: readonly Row[],
  limit: number,
  parts: { readonly toJson: (row: Row) => Json; readonly cursorOf: (row: Row) => string },
): { data: Json[]; next_cursor: string | null } {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return {
    data: shown.map(parts.toJson),
    next_cursor: last === undefined ? null : encodeCursor(parts.cursorOf(last)),
  };
}

/** One page of rows that are all there, the oldest first. */
export function pageOfAll<Row extends { readonly id: string; readonly createdAtMs: number }, Json>(
  all: readonly Row[],
  { cursor, limit }: { readonly cursor?: string | undefined; readonly limit: number },
  toJson: (row: Row) => Json,
): { data: Json[]; next_cursor: string | null } {
  const after = startOf(cursor);
  const sorted = all.toSorted(
    (one, other) => one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : 1),
  );
  const rows = sorted.filter(
    ({ createdAtMs, id }) =>
      after === null || createdAtMs > after.atMs || (createdAtMs === after.atMs && id > after.id),
  );
  return pageOf(rows, limit, {
    toJson,
    cursorOf: ({ createdAtMs, id }) => `${String(createdAtMs)}.${id}`,
  });
}

/** A cursor as clients get it, who need not know what it says. */
export function encodeCursor(text: string): string {
  return Buffer.from(text).toString("base64url");
}

function decode(cursor: string): string {
  return Buffer.from(cursor, "base64url").toString("utf8");
}

function wrongCursor(): ProblemError {
  return new ProblemError({
    status: 400,
    code: "invalid_cursor",
    detail:
      "The cursor is of no page of this list. Send the next_cursor of the page before as it came.",
    param: "cursor",
  });
}
