import type { Entry } from "../../api/types.ts";
import { Empty } from "../../components/state.tsx";
import { type Column, PagedTable } from "../../components/table.tsx";
import { Credits, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";

const columns: readonly Column<Entry>[] = [
  { head: "No.", numeric: true, cell: ({ sequence }) => <span class="number">{sequence}</span> },
  { head: "Time", cell: ({ at }) => <Time at={at} /> },
  { head: "Kind", names: true, cell: ({ kind }) => kind },
  { head: "Amount", numeric: true, cell: ({ amount }) => <Credits amount={amount} /> },
  { head: "Held by", numeric: true, cell: ({ held_change: held }) => <Credits amount={held} /> },
  { head: "Balance", numeric: true, cell: ({ balance }) => <Credits amount={balance} /> },
  { head: "By", cell: ({ actor }) => <code>{actor}</code> },
  {
    head: "For",
    cell: ({ note, receipt, reference, request }) => {
      const id = request ?? receipt;
      return (
        <>
          {id !== null && (
            <a href={linkTo(["receipts", id])}>
              <code>{id}</code>
            </a>
          )}{" "}
          {reference !== null && <code class="quiet">{reference}</code>} {note}
        </>
      );
    },
  },
];

/** The account's journal: every movement with the balance after it. */
export function AccountEntries({ id, turn }: { readonly id: string; readonly turn: number }) {
  return (
    <PagedTable
      caption="Movements"
      path={`/accounts/${id}/entries`}
      columns={columns}
      idOf={({ sequence }) => String(sequence)}
      turn={turn}
      empty={
        <Empty title="Nothing has moved yet">
          <p>Credit that is added, and what requests hold and are charged, stands here.</p>
        </Empty>
      }
    />
  );
}
