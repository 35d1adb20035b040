import type { Receipt } from "../../api/types.ts";
import { PageHead } from "../../components/page.tsx";
import { Empty } from "../../components/state.tsx";
import { type Column, PagedTable } from "../../components/table.tsx";
import { Credits, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { countText } from "../../words.ts";

const everyMs = 2_000;

const columns: readonly Column<Receipt>[] = [
  {
    head: "Request",
    names: true,
    cell: ({ id }) => (
      <a href={linkTo(["receipts", id])}>
        <code>{id}</code>
      </a>
    ),
  },
  { head: "Since", cell: ({ admitted_at: at }) => <Time at={at} ago /> },
  {
    head: "Account",
    cell: ({ account }) => (
      <a href={linkTo(["accounts", account])}>
        <code>{account}</code>
      </a>
    ),
  },
  { head: "Key", cell: ({ key }) => <code>{key}</code> },
  { head: "Format", cell: ({ format, streamed }) => `${format}${streamed ? ", streamed" : ""}` },
  {
    head: "At most out",
    numeric: true,
    cell: ({ output_allowance: most }) => <span class="number">{countText(most)}</span>,
  },
  { head: "Holds", numeric: true, cell: ({ reserved }) => <Credits amount={reserved} /> },
];

/** What runs now, on all replicas. */
export function RunningPage() {
  return (
    <>
      <PageHead title="Running">
        <span class="quiet">Requests that are under way on all replicas, newest first.</span>
      </PageHead>
      <PagedTable
        caption="Running requests"
        path="/generations"
        columns={columns}
        idOf={({ id }) => id}
        everyMs={everyMs}
        empty={
          <Empty title="Nothing runs at the moment">
            <p>A request stands here from its admission until it is settled.</p>
          </Empty>
        }
      />
    </>
  );
}
