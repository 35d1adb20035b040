import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import type { Generation } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { PageHead } from "../../components/page.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { amountColumn, type Column } from "../../components/table.tsx";
import { Badge, Time } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { WindowTable } from "../../components/window-table.tsx";
import { liveLoad, useLive } from "../../live/use-live.ts";
import { linkTo } from "../../place.ts";
import { accountColumn, formatColumn, requestColumn } from "../../receipts/request-columns.tsx";
import { countText } from "../../words.ts";
import { useMay } from "../session.ts";

const columns: readonly Column<Generation>[] = [
  requestColumn,
  { head: "Began", cell: ({ admitted_at: at }) => <Time at={at} ago /> },
  accountColumn,
  formatColumn,
  {
    head: "Tokens out",
    numeric: true,
    cell: ({ output_allowance: most, output_tokens_so_far: soFar }) => (
      <span class="number">
        {soFar === null ? "–" : countText(soFar)} of {countText(most)}
      </span>
    ),
  },
  amountColumn("Credits held", ({ reserved }) => reserved),
];

/** What runs now, on all replicas. */
export function RunningPage() {
  const [cancelling, setCancelling] = useState<Generation | null>(null);
  const load = liveLoad(useLive());
  const mayCancel = useMay("billing");
  const cancel: Column<Generation> = {
    head: "",
    cell: (generation) =>
      generation.cancelling ? (
        <Badge tone="warn">ends soon</Badge>
      ) : (
        <div class="row-actions">
          <Button
            kind="quiet-danger"
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
      <Loaded load={load} what="what runs">
        {({ rows, running }) =>
          rows === null || rows.length === 0 ? (
            <Empty title="Nothing runs at the moment">
              <p>
                A request stands here from its admission until it is settled. Send one from the{" "}
                <a href={linkTo(["playground"])}>playground</a>, or see the{" "}
                <a href={linkTo(["receipts"])}>receipts</a> of those that have ended.
              </p>
            </Empty>
          ) : (
            <>
              <p class="hint">
                {countText(running)} {running === 1 ? "runs" : "run"}
                {rows.length < running && `; these are the newest ${countText(rows.length)}`}. The
                tokens of a request are known to the replica that serves it: those of another than
                this one have a dash.
              </p>
              <WindowTable
                caption="Running requests"
                columns={mayCancel ? [...columns, cancel] : columns}
                rows={rows}
                idOf={({ id }) => id}
              />
            </>
          )
        }
      </Loaded>
      {cancelling !== null && (
        <FormDialog
          title="Cancel the request?"
          action="Cancel the request"
          leave="Let it run"
          danger
          onClose={() => setCancelling(null)}
          run={async () => {
            await send("DELETE", `/generations/${cancelling.id}`);
            say("It ends within seconds");
          }}
        >
          <p>Its caller gets an error instead of the rest of the answer, and is charged nothing.</p>
        </FormDialog>
      )}
    </>
  );
}
