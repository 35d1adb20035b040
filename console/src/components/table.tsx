import type { ComponentChildren } from "preact";
import { useAsk } from "../api/ask.ts";
import type { Page } from "../api/types.ts";
import { useLoad } from "../api/use-load.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { linkTo } from "../place.ts";
import { Button } from "./button.tsx";
import { Loaded } from "./state.tsx";
import { Credits } from "./text.tsx";

/** A column: its head, and what stands in a row. */
export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers stand to the right, so that their digits can be compared. */
  readonly numeric?: boolean;
  /**
   * The amount that stands in the cell: a column's amounts have their points one below the other. null: a dash, which stands
   * where the last whole digit would; undefined: nothing.
   */
  readonly amount?: (row: Row) => string | null | undefined;
  /** Whether the cell names its row, for screen readers. */
  readonly names?: boolean;
}

/** A column of credits; null: a dash; undefined: nothing. */
export function amountColumn<Row>(
  head: string,
  amount: NonNullable<Column<Row>["amount"]>,
): Column<Row> {
  return {
    head,
    numeric: true,
    amount,
    cell: (row) => {
      const text = amount(row);
      if (text === undefined) return null;
      return text === null ? "–" : <Credits amount={text} />;
    },
  };
}

/** Characters behind the point of an amount; none of none. */
export function decimalsOf(amount: string | null | undefined): number {
  const [, rest] = amount?.split(".") ?? [];
  return rest?.length ?? 0;
}

/** The column that names each row, with its id beside the name; `page`: whose page the name leads to. */
export function nameColumn<Row extends { readonly id: string; readonly name: string }>(
  head: string,
  page?: string,
): Column<Row> {
  return {
    head,
    names: true,
    // Where columns have no room the id goes below the name, and a long name is cut before the last column is.
    cell: ({ id, name }) => (
      <span class="named">
        {page === undefined ? (
          <span title={name}>{name}</span>
        ) : (
          <a href={linkTo([page, id])} title={name}>
            {name}
          </a>
        )}{" "}
        <code class="quiet">{id}</code>
      </span>
    ),
  };
}

/** Rows and columns. On a narrow screen it scrolls by itself. */
export function Table<Row>({
  caption,
  columns,
  current,
  idOf,
  rows,
}: {
  /** What the table shows, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  /** The id of the row of which more stands on the page. */
  readonly current?: string | null;
}) {
  const decimals = decimalsOfColumns(columns, rows);
  return (
    // A part that scrolls has to be reached by the keyboard.
    <div class="table" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <TableHead columns={columns} />
        <tbody>
          {rows.map((row) => (
            <TableRow
              key={idOf(row)}
              row={row}
              columns={columns}
              decimals={decimals}
              current={idOf(row) === current}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Of each column the decimals of its longest amount, so that points stand one below the other. */
export function decimalsOfColumns<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): readonly number[] {
  return columns.map(({ amount }) =>
    amount === undefined
      ? 0
      : rows.reduce((most, row) => Math.max(most, decimalsOf(amount(row))), 0),
  );
}

/** The heads of the columns. */
export function TableHead<Row>({ columns }: { readonly columns: readonly Column<Row>[] }) {
  return (
    <thead>
      <tr>
        {columns.map(({ head, numeric }) => (
          <th key={head} scope="col" class={numeric === true ? "right" : ""}>
            {head === "" ? <span class="unseen">Actions</span> : head}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** The cells of a row; `index` is its number in a table of which not all rows are there. */
export function TableRow<Row>({
  columns,
  current = false,
  decimals,
  index,
  row,
}: {
  readonly columns: readonly Column<Row>[];
  readonly decimals: readonly number[];
  readonly row: Row;
  readonly index?: number;
  readonly current?: boolean;
}) {
  return (
    <tr aria-rowindex={index} aria-current={current ? "true" : undefined}>
      {columns.map(({ amount, cell, head, names, numeric }, at) =>
        names === true ? (
          <th key={head} scope="row">
            {cell(row)}
          </th>
        ) : (
          <td key={head} class={numeric === true ? "right" : ""} data-head={head}>
            {cell(row)}
            <Padding decimals={decimals[at] ?? 0} amount={amount?.(row)} />
          </td>
        ),
      )}
    </tr>
  );
}

/** As wide as the decimals that others of the column have and this one has not. */
export function Padding({
  amount,
  decimals,
}: {
  readonly decimals: number;
  readonly amount: string | null | undefined;
}) {
  const missing = decimals - decimalsOf(amount);
  if (amount === undefined || missing === 0) return null;
  // A point is about as wide as half a digit.
  const width = missing + (missing === decimals ? 0.5 : 0);
  return <span class="padding" style={{ width: `${String(width)}ch` }} />;
}

/** A list of the API as a table, page by page. */
export function PagedTable<Row>({
  above,
  below,
  caption,
  columns,
  empty,
  everyMs = null,
  idOf,
  path,
  query = {},
  turn = 0,
}: {
  readonly caption: string;
  /** What stands above the rows of a page, such as a plot of them. */
  readonly above?: (rows: readonly Row[]) => ComponentChildren;
  /** What stands below the last page, and below an empty list. */
  readonly below?: (page: Page<Row>) => ComponentChildren;
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | null | undefined>>;
  /** What stands where the list has no row. */
  readonly empty: ComponentChildren;
  /** How often the first page is asked for again. */
  readonly everyMs?: number | null;
  /** Another number asks again. */
  readonly turn?: number;
}) {
  const ask = useAsk();
  const name = `${path}?${JSON.stringify(query)}`;
  const [steps, setSteps] = useState<{
    readonly name: string;
    readonly cursors: readonly string[];
  }>({
    name,
    cursors: [],
  });
  // Another list begins at its first page, and so does this one when it is come back to.
  useEffect(() => setSteps({ name, cursors: [] }), [name]);
  const cursors = steps.name === name ? steps.cursors : [];
  const cursor = cursors.at(-1) ?? null;
  const load = useLoad(
    `${name} ${cursor ?? ""}`,
    (signal) => ask<Page<Row>>(path, { query: { ...query, cursor }, signal }),
    cursor === null ? everyMs : null,
  );
  // What is there stays until the answer comes.
  const asked = useRef(turn);
  useEffect(() => {
    if (asked.current !== turn) void load.reload();
    asked.current = turn;
  }, [turn, load.reload]);
  const step = (next: readonly string[]): void => setSteps({ name, cursors: next });
  return (
    <Loaded load={load} what={caption.toLowerCase()}>
      {(page) => {
        const { data, next_cursor: next } = page;
        const end = next === null && below?.(page);
        if (data.length === 0 && cursor === null)
          return (
            <>
              {empty}
              {end}
            </>
          );
        return (
          <>
            {above?.(data)}
            <Table caption={caption} columns={columns} rows={data} idOf={idOf} />
            {(cursor !== null || next !== null) && (
              <nav class="pages" aria-label={`Pages of ${caption.toLowerCase()}`}>
                <Button disabled={cursor === null} onClick={() => step(cursors.slice(0, -1))}>
                  Newer
                </Button>
                <span class="quiet">Page {cursors.length + 1}</span>
                <Button
                  disabled={next === null}
                  onClick={() => next !== null && step([...cursors, next])}
                >
                  Older
                </Button>
              </nav>
            )}
            {end}
          </>
        );
      }}
    </Loaded>
  );
}
