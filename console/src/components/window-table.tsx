import { useMemo, useState } from "preact/hooks";
import { type Column, decimalsOfColumns, Table, TableHead, TableRow } from "./table.tsx";

/** Up to so many rows are all there; of more, those that are seen, and some above and below them. */
const wholeMax = 100;
const around = 20;
/** As tall as `.table-window` makes each row and itself, in pixels. */
const rowPx = 38;
const windowPx = 640;

/** A table of thousands of rows, which stands as tall as a screen and scrolls by itself. */
export function WindowTable<Row>(table: {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
}) {
  const { caption, columns, idOf, rows } = table;
  const [top, setTop] = useState(0);
  const decimals = useMemo(() => decimalsOfColumns(columns, rows), [columns, rows]);
  if (rows.length <= wholeMax) return <Table {...table} />;
  const first = Math.max(
    Math.min(Math.floor(top / rowPx), rows.length - Math.ceil(windowPx / rowPx)) - around,
    0,
  );
  const shown = rows.slice(first, first + Math.ceil(windowPx / rowPx) + 2 * around);
  const below = rows.length - first - shown.length;
  return (
    <div
      class="table table-window"
      role="region"
      aria-label={caption}
      tabIndex={0}
      onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
    >
      <table aria-rowcount={rows.length + 1}>
        <caption class="unseen">{caption}</caption>
        <TableHead columns={columns} />
        <tbody>
          <Gap rows={first} columns={columns.length} />
          {shown.map((row, at) => (
            <TableRow
              key={idOf(row)}
              row={row}
              columns={columns}
              decimals={decimals}
              index={first + at + 2}
            />
          ))}
          <Gap rows={below} columns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

/** Stands for rows that are not there, so that the scroll bar tells how many there are. */
function Gap({ columns, rows }: { readonly rows: number; readonly columns: number }) {
  if (rows === 0) return null;
  return (
    <tr class="gap" aria-hidden="true" style={{ height: `${String(rows * rowPx)}px` }}>
      <td colSpan={columns}>{null}</td>
    </tr>
  );
}
