import { expect, test } from "vitest";
import { type FailureKind, failureKinds } from "../../src/failure.ts";
import { readDocument, rowsOf } from "./tables.ts";

/** The cells that docs/errors.md must have for a failure code, before the one that explains it. */
function expectedCells(code: string, kind: FailureKind): readonly string[] {
  const { messagesStatus, messagesType, openaiCode, openaiType, retry, status } = kind;
  const statuses =
    messagesStatus === undefined
      ? String(status)
      : `${String(status)}, Messages ${String(messagesStatus)}`;
  const advice = retry ? "`retry-after`" : status < 500 ? "`x-should-retry: false`" : "none";
  return [
    `\`${code}\``,
    statuses,
    `\`${openaiType}\` / \`${openaiCode}\``,
    `\`${messagesType}\``,
    advice,
    kind.logLevel,
  ];
}

test("docs/errors.md and the table of failure codes say the same, both ways", () => {
  const codes = /^`[a-z_]+`$/;
  const rows = rowsOf(readDocument("docs/errors.md"), codes);
  expect(rows.map((cells) => cells.slice(0, 6))).toEqual(
    Object.entries(failureKinds).map(([code, kind]) => expectedCells(code, kind)),
  );
  for (const cells of rows) expect(cells[6]?.length, cells[0]).toBeGreaterThan(30);
});
