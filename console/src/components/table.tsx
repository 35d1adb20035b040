import type { ComponentChildren } from "preact";
import { get } from "../api/client.ts";
import type { Page } from "../api/types.ts";
import { useLoad } from "../api/use-load.ts";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Loaded } from "./state.tsx";

/** A column: its head, and what stands in a row. */
export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers stand to the right, so that their digits can be compared. */
  readonly numeric?: boolean;
  /** Whether the cell names its row, for screen readers. */
  readonly names?: boolean;
}

/** The column that names each row, with its id beside the name. */
export function nameColumn<Row extends { readonly id: string; readonly name: string }>(
  head: string,
): Column<Row> {
  return {
    head,
    names: true,
    cell: ({ id, name }) => (
      <>
        {name} <code class="quiet">{id}</code>
      </>
    ),
  };
}

/** Rows and columns. On a narrow screen it scrolls by itself. */
export function Table<Row>({
  caption,
  columns,
  idOf,
  rows,
}: {
  /** What the table shows, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
}) {
  return (
    // A part that scrolls has to be reached by the keyboard.
    <div class="table" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ head, numeric }) => (
              <th key={head} scope="col" class={numeric === true ? "right" : ""}>
                {head === "" ? <span class="unseen">Actions</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={idOf(row)}>
              {columns.map(({ cell, head, names, numeric }) =>
                names === true ? (
                  <th key={head} scope="row">
                    {cell(row)}
                  </th>
                ) : (
                  <td key={head} class={numeric === true ? "right" : ""}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A list of the API as a table, page by page. */
export function PagedTable<Row>({
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
  const name = `${path}?${JSON.stringify(query)}`;
  const [steps, setSteps] = useState<{
    readonly name: string;
    readonly cursors: readonly string[];
  }>({
    name,
    cursors: [],
  });
  // Another list begins at its first page.
  const cursors = steps.name === name ? steps.cursors : [];
  const cursor = cursors.at(-1) ?? null;
  const load = useLoad(
    `${name} ${cursor ?? ""} ${String(turn)}`,
    (signal) => get<Page<Row>>(path, { query: { ...query, cursor }, signal }),
    cursor === null ? everyMs : null,
  );
  const step = (next: readonly string[]): void => setSteps({ name, cursors: next });
  return (
    <Loaded load={load} what={caption.toLowerCase()}>
      {({ data, next_cursor: next }) =>
        data.length === 0 && cursor === null ? (
          <>{empty}</>
        ) : (
          <>
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
          </>
        )
      }
    </Loaded>
  );
}
