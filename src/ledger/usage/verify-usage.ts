import { bigOf, numberOf, numberOrNullOf, type Row, textOf, textOrNullOf } from "../row.ts";
import type { Reading, RowSource } from "../row-source.ts";
import { bucketOf, measures, outcomeColumnOf } from "./measures.ts";
import { keyColumnsOf, type SumsTable, sumsTables } from "./tables.ts";

/** Where kept sums are not what receipts come to. */
export type UsageProblem = (accountId: string, message: string) => void;

/**
 * Adds up every receipt that kept sums cover again, and compares, a day of an account at a time: whose rows are they, and do
 * they have the same figures.
 */
export function* verifyUsage(report: UsageProblem): Reading<void> {
  yield* verifyProgress(report);
  const receipts = new DayRows(coveredReceipts, "resolved_at_ms");
  const tables = [sumsTables.quarter, sumsTables.day, sumsTables.label].map((table) => ({
    table,
    rows: new DayRows(keptRows(table), "begin_ms"),
  }));
  const weeks = new DayRows(keptRows(sumsTables.week), "begin_ms");
  let week = openWeek(null);
  const together = new Map<string, Together>();
  const archives = yield* readArchives();
  for (;;) {
    const next = yield* earliest([receipts, weeks, ...tables.map(({ rows }) => rows)]);
    if (next === null || !week.has(next)) {
      week.compare(archives, report);
      week = openWeek(next);
    }
    if (next === null) break;
    const ended = yield* receipts.take(next);
    week.add(ended, yield* weeks.take(next));
    const archive = archives.get(next.accountId) ?? null;
    const ofArchive = archive !== null && next.dayMs < archive.untilMs ? noFigures() : null;
    for (const { rows, table } of tables) {
      const kept = yield* rows.take(next);
      const rest = ofArchive === null ? null : noFigures();
      const sums = new Map<string, bigint[]>();
      addReceipts(table, ended, sums);
      compareRows(table, { sums, kept, rest }, (message) => report(next.accountId, message));
      if (table.name === "usage_quarter") {
        addTogether(together, kept);
        addFigures(ofArchive, rest);
      } else if (String(rest) !== String(ofArchive))
        report(next.accountId, `${table.name} has other sums of archived requests: ${dayOf(next)}`);
    }
    addFigures(archive?.found ?? null, ofArchive);
  }
  for (const [accountId, { figures, found }] of archives)
    if (figures !== found.join(","))
      report(accountId, "what is kept of archived requests is not what their receipts came to");
  yield* verifyTogether(together, (message) => report("", message));
}

interface Week {
  has(day: AccountDay): boolean;
  add(ended: readonly Row[], kept: readonly Row[]): void;
  compare(archives: ReadonlyMap<string, Archive>, report: UsageProblem): void;
}

/** The week of an account's day, whose rows come with its first day. One whose receipts may be archived is not asked for. */
function openWeek(first: AccountDay | null): Week {
  const table = sumsTables.week;
  const beginOf = ({ dayMs }: AccountDay): number => dayMs - (dayMs % table.spanMs);
  const sums = new Map<string, bigint[]>();
  const rows: Row[] = [];
  return {
    has: (day) => first?.accountId === day.accountId && beginOf(first) === beginOf(day),
    add(ended, kept) {
      addReceipts(table, ended, sums);
      rows.push(...kept);
    },
    compare(archives, report) {
      if (first === null) return;
      const { accountId } = first;
      if (beginOf(first) >= (archives.get(accountId)?.untilMs ?? -Infinity))
        compareRows(table, { sums, kept: rows, rest: null }, (message) =>
          report(accountId, message),
        );
    },
  };
}

interface Archive {
  /** Requests that ended from then on have their receipts. */
  readonly untilMs: number;
  readonly figures: string;
  /** What the kept sums have beyond the receipts that are there. */
  readonly found: bigint[];
}

/** What archived receipts came to, which the kept sums have in their place. */
function* readArchives(): Reading<ReadonlyMap<string, Archive>> {
  const archives = new Map<string, Archive>();
  const rows = { sql: `select account_id, until_ms, ${allFigures} as figures from archive` };
  for (let piece = yield rows; piece.length > 0; piece = yield rows)
    for (const row of piece)
      archives.set(textOf(row, "account_id"), {
        untilMs: numberOf(row, "until_ms"),
        figures: textOf(row, "figures"),
        found: noFigures(),
      });
  return archives;
}

function noFigures(): bigint[] {
  return measures.map(() => 0n);
}

function addFigures(to: bigint[] | null, more: readonly bigint[] | null): void {
  if (to !== null && more !== null)
    for (const [at, one] of more.entries()) to[at] = (to[at] ?? 0n) + one;
}

function dayOf({ dayMs }: AccountDay): string {
  return new Date(dayMs).toISOString().slice(0, 10);
}

const allFigures = measures.map(({ column }) => `coalesce(${column}, 0)`).join(" || ',' || ");

/** What the accounts' rows of a quarter and a format come to: the credit, and a number that depends on every other figure. */
type Together = readonly [charged: bigint, digest: bigint];

const figuresTogether = `charged_nanos, ${measures
  .filter(({ column }) => column !== "charged_nanos")
  .map(({ column }, at) => `coalesce(${column}, 0) * cast(${String(2 * at + 1)} as bigint)`)
  .join(" + ")} as digest`;

function addTogether(together: Map<string, Together>, kept: readonly Row[]): void {
  for (const row of kept) {
    const name = nameOf(sumsTables.all, row, numberOf(row, "begin_ms"));
    const [charged, digest] = together.get(name) ?? [0n, 0n];
    together.set(name, [charged + bigOf(row, "charged_nanos"), digest + bigOf(row, "digest")]);
  }
}

/** The sums of all accounts are those of each, added up. */
function* verifyTogether(
  together: Map<string, Together>,
  report: (message: string) => void,
): Reading<void> {
  const rows = {
    sql: `select begin_ms, format, ${figuresTogether} from usage_all order by begin_ms, format`,
  };
  for (let piece = yield rows; piece.length > 0; piece = yield rows)
    for (const row of piece) {
      const name = nameOf(sumsTables.all, row, numberOf(row, "begin_ms"));
      const [charged, digest] = together.get(name) ?? [0n, 0n];
      together.delete(name);
      if (charged !== bigOf(row, "charged_nanos") || digest !== bigOf(row, "digest"))
        report(`usage_all is not what the accounts' rows come to: ${name}`);
    }
  for (const name of together.keys()) report(`usage_all lacks a row: ${name}`);
}

function* verifyProgress(report: UsageProblem): Reading<void> {
  const ahead = {
    sql: `select progress.account_id from usage_progress as progress left join account on account.id = progress.account_id
      where account.id is null or progress.summed_sequence > account.entries`,
  };
  for (;;) {
    const piece = yield ahead;
    if (piece.length === 0) return;
    for (const row of piece)
      report(
        textOf(row, "account_id"),
        "usage is kept up to an entry that the account does not have",
      );
  }
}

// The sum keeps SQLite from finding receipts by their numbers: they are wanted in the order of their times.
const coveredReceipts = `select receipt.account_id, receipt.resolved_at_ms, receipt.key_id, receipt.format,
    coalesce(receipt.label, '') as label, receipt.outcome, receipt.input_tokens, receipt.cached_input_tokens,
    receipt.output_tokens, receipt.reasoning_tokens, receipt.charged_nanos, receipt.first_output_ms, receipt.total_ms
  from usage_progress as progress cross join reservation as receipt
  where receipt.account_id = progress.account_id and receipt.state <> 'open'
    and receipt.resolved_sequence + 0 <= progress.summed_sequence
  order by progress.account_id, receipt.resolved_at_ms`;

function keptRows(table: SumsTable): string {
  const more = table.name === "usage_quarter" ? `, ${figuresTogether}` : "";
  return `select ${keyColumnsOf(table).join(", ")}, ${allFigures} as figures${more} from ${table.name} order by account_id, begin_ms`;
}

interface AccountDay {
  readonly accountId: string;
  readonly dayMs: number;
}

/** Rows in the order of their accounts and times, taken a day of an account at a time. */
class DayRows {
  private readonly source: RowSource;
  private readonly time: string;
  private rows: readonly Row[] = [];
  private at = 0;
  private ended = false;

  constructor(sql: string, time: string) {
    this.source = { sql };
    this.time = time;
  }

  /** Whose day comes next; null: there are no more rows. */
  *next(): Reading<AccountDay | null> {
    if (this.at >= this.rows.length && !this.ended) {
      this.rows = yield this.source;
      this.at = 0;
      this.ended = this.rows.length === 0;
    }
    const row = this.rows[this.at];
    if (row === undefined) return null;
    const atMs = numberOf(row, this.time);
    return {
      accountId: textOf(row, "account_id"),
      dayMs: atMs - (atMs % sumsTables.day.spanMs),
    };
  }

  *take(day: AccountDay): Reading<readonly Row[]> {
    const taken: Row[] = [];
    for (;;) {
      const next = yield* this.next();
      const row = this.rows[this.at];
      if (next === null || row === undefined || compare(next, day) !== 0) return taken;
      taken.push(row);
      this.at += 1;
    }
  }
}

function* earliest(sources: readonly DayRows[]): Reading<AccountDay | null> {
  let first: AccountDay | null = null;
  for (const source of sources) {
    const next = yield* source.next();
    if (next !== null && (first === null || compare(next, first) < 0)) first = next;
  }
  return first;
}

function compare(one: AccountDay, other: AccountDay): number {
  if (one.accountId !== other.accountId) return one.accountId < other.accountId ? -1 : 1;
  return one.dayMs - other.dayMs;
}

function addReceipts(table: SumsTable, ended: readonly Row[], sums: Map<string, bigint[]>): void {
  for (const receipt of ended) {
    const atMs = numberOf(receipt, "resolved_at_ms");
    const name = nameOf(table, receipt, atMs - (atMs % table.spanMs));
    const its = sums.get(name) ?? noFigures();
    sums.set(name, its);
    addReceipt(its, receipt);
  }
}

function compareRows(
  table: SumsTable,
  {
    kept,
    rest,
    sums,
  }: {
    /** What the receipts come to; what the kept rows have is taken out. */
    readonly sums: Map<string, bigint[]>;
    readonly kept: readonly Row[];
    /** Where receipts may be archived: what the kept rows have beyond those that are there is added to it. */
    readonly rest: bigint[] | null;
  },
  report: (message: string) => void,
): void {
  for (const row of kept) {
    const name = nameOf(table, row, numberOf(row, "begin_ms"));
    const its = sums.get(name);
    sums.delete(name);
    if (rest !== null) {
      const beyond = textOf(row, "figures")
        .split(",")
        .map((figure, at) => BigInt(figure) - (its?.[at] ?? 0n));
      addFigures(rest, beyond);
      if (beyond.some((figure) => figure < 0n))
        report(`${table.name} has less than the receipts come to: ${name}`);
    } else if (its === undefined) report(`${table.name} has a row of no receipt: ${name}`);
    else if (its.join(",") !== textOf(row, "figures"))
      report(`${table.name} is not what the receipts come to: ${name}`);
  }
  for (const name of sums.keys()) report(`${table.name} lacks a row: ${name}`);
}

function nameOf({ dimensions }: SumsTable, row: Row, beginMs: number): string {
  const values = Object.keys(dimensions).map((column) => textOf(row, column));
  return [new Date(beginMs).toISOString(), ...values].join(" ");
}

const places = new Map(measures.map(({ column }, at) => [column, at]));
const tokens = ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"];

function addReceipt(sums: bigint[], receipt: Row): void {
  const add = (column: string, count: bigint): void => {
    const place = places.get(column);
    if (place !== undefined) sums[place] = (sums[place] ?? 0n) + count;
  };
  add("requests", 1n);
  for (const column of tokens) if (receipt[column] !== null) add(column, bigOf(receipt, column));
  add("charged_nanos", bigOf(receipt, "charged_nanos"));
  add(outcomeColumnOf(textOrNullOf(receipt, "outcome")), 1n);
  for (const latency of ["first_output", "total"]) {
    const ms = numberOrNullOf(receipt, `${latency}_ms`);
    if (ms !== null) add(`${latency}_${String(bucketOf(ms))}`, 1n);
  }
}
