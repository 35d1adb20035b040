import type { Refusal } from "../../api/types.ts";
import { PageHead } from "../../components/page.tsx";
import { Empty } from "../../components/state.tsx";
import { type Column, PagedTable } from "../../components/table.tsx";
import { Time } from "../../components/text.tsx";
import type { LiveState } from "../../live/live-state.ts";
import { useLive } from "../../live/use-live.ts";
import { linkTo } from "../../place.ts";
import { KeyName } from "../../receipts/account-name.tsx";
import { refusalWords } from "./refusal-words.ts";

const columns: readonly Column<Refusal>[] = [
  { head: "Time", cell: ({ at }) => <Time at={at} /> },
  {
    head: "Code",
    names: true,
    cell: ({ code, status }) => (
      <>
        <code>{code}</code> <span class="number quiet">{status}</span>
      </>
    ),
  },
  { head: "Why", cell: ({ code }) => <span class="wraps">{refusalWords(code)}</span> },
  {
    head: "Key",
    cell: ({ key }) => (key === null ? <span class="quiet">not known</span> : <KeyName id={key} />),
  },
  {
    head: "Request",
    cell: ({ request, route }) => (
      <>
        <code>{request}</code>
        <br />
        <span class="quiet">{route}</span>
      </>
    ),
  },
];

/** What was refused or failed of late, and why. */
export function RefusedPage() {
  const live = useLive();
  return (
    <>
      <PageHead title="Refused">
        <span class="quiet">
          The last 1,000 requests that this replica refused, or that failed, since its start. A key
          leads to its page.
        </span>
      </PageHead>
      <PagedTable
        caption="Refusals"
        path="/refusals"
        columns={columns}
        idOf={({ request }) => request}
        turn={failuresOf(live)}
        empty={
          <Empty title="Nothing was refused, and nothing failed">
            <p>
              A request that is answered with an error stands here with the reason. How an admitted
              request ended is on its <a href={linkTo(["receipts"])}>receipt</a>.
            </p>
          </Empty>
        }
      />
    </>
  );
}

/** How many there were: another number means that the list has changed. */
function failuresOf({ now }: LiveState): number {
  return now?.failures.reduce((sum, { count }) => sum + count, 0) ?? 0;
}
