import { type SumsTable, sumsTables } from "./tables.ts";
import type { UsageQuery, UsageTime } from "./usage-query.ts";

/** Sums or receipts of a range of time that `[beginMs, endMs)` is, and of each day of it only `[fromMs, toMs)` since its begin. */
export interface UsageRange {
  readonly beginMs: number;
  readonly endMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Which kept rows a query reads. What has ended and is in no kept sum comes on top. */
export interface UsageParts {
  /** null: no sums, receipts alone. */
  readonly table: SumsTable | null;
  /** Rows of the table whose time begins in it. */
  readonly whole: { readonly beginMs: number; readonly endMs: number };
  /**
   * Rows of a finer table, or receipts, of times that a row of the table is not wholly in: each counts where it belongs, and
   * is taken away where the row of the table was counted.
   */
  readonly finer: readonly { readonly table: SumsTable | null; readonly range: UsageRange }[];
  /** Where the row of the table that begins then is counted, by an instant of it. */
  readonly countedAt: (beginMs: number) => number;
  /** The first begin of the rows that are counted from an instant on. */
  readonly boundary: (atMs: number) => number;
}

/** A row of a table that times begin or end within. */
interface SplitRow {
  readonly beginMs: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** How the times of a query are put together from rows that are longer or begin at other instants than they do. */
export function partsOf(
  query: UsageQuery,
  times: readonly UsageTime[],
  /** Requests that ended from then on have their receipts. */
  archivedMs: number,
): UsageParts {
  const [first, last] = [times[0]?.beginMs ?? 0, times.at(-1)?.endMs ?? 0];
  const table = tableOf(query, first, last);
  if (table === null)
    return {
      table,
      whole: { beginMs: first, endMs: first },
      finer: [{ table: null, range: wholeRange(first, last) }],
      countedAt: (beginMs) => beginMs,
      boundary: (atMs) => atMs,
    };
  const { spanMs } = table;
  const split = splitRows(times, spanMs);
  // The shorter side of a row is read from what is finer, and the row is counted on the other; not from what was archived.
  const isEndFiner = ({ beginMs, firstMs, lastMs }: SplitRow): boolean =>
    beginMs + spanMs - firstMs < lastMs - beginMs ||
    (beginMs < archivedMs && archivedMs <= firstMs);
  const endFiner = new Set([...split.values()].filter(isEndFiner).map(({ beginMs }) => beginMs));
  const boundary = (atMs: number): number => {
    const beginMs = atMs - (atMs % spanMs);
    return beginMs === atMs || !endFiner.has(beginMs) ? beginMs : beginMs + spanMs;
  };
  const finer = [...split.values()].flatMap((row) =>
    finerOf(row, table, endFiner.has(row.beginMs)),
  );
  return {
    table,
    whole: { beginMs: boundary(first), endMs: boundary(last) },
    finer: spanMs > sumsTables.day.spanMs ? finer : joinDays(finer),
    countedAt: (beginMs) => (endFiner.has(beginMs) ? beginMs : beginMs + spanMs - 1),
    boundary,
  };
}

function tableOf(
  { accountId, accountIds, by, format, keyId }: UsageQuery,
  firstMs: number,
  lastMs: number,
): SumsTable | null {
  const dayMs = sumsTables.day.spanMs;
  // In a short time there are few whole days, and much of them would be taken away again.
  const isFine = by.includes("hour") || lastMs - firstMs <= 2 * dayMs;
  const isOfDays = !by.includes("hour") && firstMs % dayMs === 0 && lastMs % dayMs === 0;
  const isOfEach = accountId !== null || accountIds !== undefined || by.includes("account");
  if (!by.includes("label") && !by.includes("key") && keyId === null && !isOfEach)
    return sumsTables.all;
  if (!by.includes("label")) return isFine ? sumsTables.quarter : sumsTables.day;
  const isOfKeys = by.includes("key") || by.includes("format") || keyId !== null || format !== null;
  if (!isOfKeys) return isFine && !isOfDays ? null : sumsTables.label;
  // Days divide all weeks, and in a month there are few whole ones.
  const isOfWeeks = !by.includes("hour") && !by.includes("day");
  return isOfWeeks && lastMs - firstMs > 4 * sumsTables.week.spanMs ? sumsTables.week : null;
}

function splitRows(times: readonly UsageTime[], spanMs: number): ReadonlyMap<number, SplitRow> {
  const split = new Map<number, SplitRow>();
  const edges = [...times.map(({ beginMs }) => beginMs), times.at(-1)?.endMs ?? 0];
  for (const atMs of edges) {
    const beginMs = atMs - (atMs % spanMs);
    if (beginMs === atMs) continue;
    const known = split.get(beginMs);
    split.set(beginMs, { beginMs, firstMs: known?.firstMs ?? atMs, lastMs: atMs });
  }
  return split;
}

function finerOf(
  { beginMs, firstMs, lastMs }: SplitRow,
  { name, spanMs }: SumsTable,
  atEnd: boolean,
): UsageParts["finer"] {
  const range = atEnd ? ([firstMs, beginMs + spanMs] as const) : ([beginMs, lastMs] as const);
  const { quarter } = sumsTables;
  if (name !== "usage_day") return [{ table: null, range: wholeRange(...range) }];
  if (firstMs !== lastMs && (firstMs % quarter.spanMs !== 0 || lastMs % quarter.spanMs !== 0))
    return [{ table: null, range: wholeRange(...range) }];
  // Whole quarters, and the receipts of the one that the time begins or ends within.
  const [from, to] = range;
  const inner = atEnd ? from + ((quarter.spanMs - (from % quarter.spanMs)) % quarter.spanMs) : from;
  const outer = atEnd ? to : to - (to % quarter.spanMs);
  const parts = [
    { table: quarter, range: wholeRange(inner, outer) },
    {
      table: null,
      range: wholeRange(...(atEnd ? ([from, inner] as const) : ([outer, to] as const))),
    },
  ];
  return parts.filter(({ range: part }) => part.beginMs < part.endMs);
}

function wholeRange(beginMs: number, endMs: number): UsageRange {
  return { beginMs, endMs, fromMs: 0, toMs: sumsTables.day.spanMs };
}

/** Ranges of the same hours of one day after another become one: a year of local days is a few of them. */
function joinDays(parts: UsageParts["finer"]): UsageParts["finer"] {
  const dayMs = sumsTables.day.spanMs;
  const joined: { table: SumsTable | null; range: UsageRange }[] = [];
  for (const { range, table } of parts) {
    const beginMs = range.beginMs - (range.beginMs % dayMs);
    const daily = {
      beginMs,
      endMs: beginMs + dayMs,
      fromMs: range.beginMs - beginMs,
      toMs: range.endMs - beginMs,
    };
    const before = joined.find(
      (one) =>
        one.table === table &&
        one.range.endMs === beginMs &&
        one.range.fromMs === daily.fromMs &&
        one.range.toMs === daily.toMs,
    );
    if (before === undefined) joined.push({ table, range: daily });
    else before.range = { ...before.range, endMs: daily.endMs };
  }
  return joined;
}
