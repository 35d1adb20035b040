import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import type { Generation, Refusal } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { PageHead, Section } from "../../components/page.tsx";
import { Empty } from "../../components/state.tsx";
import { type Column, PagedTable } from "../../components/table.tsx";
import { Badge, Credits, Time } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { linkTo } from "../../place.ts";
import { countText } from "../../words.ts";
import { useMay } from "../session.ts";

const everyMs = 2_000;

const columns: readonly Column<Generation>[] = [
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
  { head: "Format", cell: ({ format, streamed }) => `${format}${streamed ? ", streamed" : ""}` },
  {
    head: "Tokens out",
    numeric: true,
    cell: ({ output_allowance: most, output_tokens_so_far: soFar }) => (
      <span class="number">
        {soFar === null ? "–" : countText(soFar)} of {countText(most)}
      </span>
    ),
  },
  { head: "Holds", numeric: true, cell: ({ reserved }) => <Credits amount={reserved} /> },
];

/** What runs now, on all replicas, and what was refused of late. */
export function RunningPage() {
  const [cancelling, setCancelling] = useState<Generation | null>(null);
  const [turn, setTurn] = useState(0);
  const mayCancel = useMay("billing");
  const cancel: Column<Generation> = {
    head: "",
    cell: (generation) =>
      generation.cancelling ? (
        <Badge tone="warn">ends soon</Badge>
      ) : (
        <div class="row-actions">
          <Button
            kind="quiet"
            label={`Cancel the request ${generation.id}`}
            onClick={() => setCancelling(generation)}
          >
            Cancel
          </Button>
        </div>
      ),
  };
  return (
    <>
      <PageHead title="Running">
        <span class="quiet">Requests that are under way on all replicas, newest first.</span>
      </PageHead>
      <PagedTable
        caption="Running requests"
        path="/generations"
        columns={mayCancel ? [...columns, cancel] : columns}
        idOf={({ id }) => id}
        everyMs={everyMs}
        turn={turn}
        empty={
          <Empty title="Nothing runs at the moment">
            <p>A request stands here from its admission until it is settled.</p>
          </Empty>
        }
      />
      <Section
        title="Refused or failed of late"
        hint="The last 1,000 of the replica that answers, from its memory, since its start."
      >
        <PagedTable
          caption="Refusals"
          path="/refusals"
          columns={refusalColumns}
          idOf={({ request }) => request}
          everyMs={everyMs}
          empty={<p class="quiet">None since this replica began.</p>}
        />
      </Section>
      {cancelling !== null && (
        <FormDialog
          title="Cancel the request?"
          action="Cancel the request"
          danger
          onClose={() => setCancelling(null)}
          run={async () => {
            await send("DELETE", `/generations/${cancelling.id}`);
            say("It ends within seconds");
            setTurn(turn + 1);
          }}
        >
          <p>Its caller gets an error instead of the rest of the answer, and is charged nothing.</p>
        </FormDialog>
      )}
    </>
  );
}

const refusalColumns: readonly Column<Refusal>[] = [
  { head: "Time", cell: ({ at }) => <Time at={at} /> },
  { head: "Code", names: true, cell: ({ code }) => <code>{code}</code> },
  { head: "Status", numeric: true, cell: ({ status }) => <span class="number">{status}</span> },
  { head: "Route", cell: ({ route }) => route },
  {
    head: "Key",
    cell: ({ key }) =>
      key === null ? (
        <span class="quiet">not known</span>
      ) : (
        <a href={linkTo(["receipts"], { key })}>
          <code>{key}</code>
        </a>
      ),
  },
  { head: "Request", cell: ({ request }) => <code>{request}</code> },
];
