import { useState } from "preact/hooks";
import { getAll } from "../../api/client.ts";
import type { Account, Key } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { BudgetLeft } from "../../components/budget-figures.tsx";
import { Button } from "../../components/button.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { type Column, nameColumn, Table } from "../../components/table.tsx";
import { Badge, Time } from "../../components/text.tsx";
import { useMay } from "../session.ts";
import { NewKey } from "./key-dialogs.tsx";
import { useKeyDialogs } from "./use-key-dialogs.tsx";

const columns: readonly Column<Key>[] = [
  nameColumn("Key", "keys"),
  { head: "Status", cell: (key) => <KeyStatus value={key} /> },
  { head: "May", cell: ({ scopes }) => scopes.join(", ") },
  { head: "Left of its budget", numeric: true, cell: (key) => <BudgetLeft of={key} /> },
  {
    head: "Expires",
    cell: ({ expires_at: at }) => (at === null ? "never" : <Time at={at} ago />),
  },
  {
    head: "Last used",
    cell: ({ last_used_at: at }) => (at === null ? "never" : <Time at={at} ago />),
  },
];

/** The keys of an account, with what can be done to each. */
export function AccountKeys({ account }: { readonly account: Account }) {
  const load = useLoad(`keys ${account.id}`, (signal) =>
    getAll<Key>(`/accounts/${account.id}/keys`, { signal }),
  );
  const [making, setMaking] = useState(false);
  const dialogs = useKeyDialogs(load.reload);
  const mayChange = useMay("billing");
  const make = mayChange && (
    <Button kind="main" onClick={() => setMaking(true)}>
      New key
    </Button>
  );
  const actions: Column<Key> = {
    head: "",
    cell: (key) => (
      <div class="row-actions">
        {dialogs.buttons(key, ["budget", "pause", "rotate", "revoke"], "quiet")}
      </div>
    ),
  };
  return (
    <>
      <Loaded load={load} what="the keys">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="This account has no key">
              <p>A client sends a key with each request, one of its own.</p>
              {make || <p class="quiet">An operator with the role billing or owner makes keys.</p>}
            </Empty>
          ) : (
            <>
              <div class="actions actions-above">{make}</div>
              <Table
                caption="Keys"
                columns={mayChange ? [...columns, actions] : columns}
                rows={data}
                idOf={({ id }) => id}
              />
            </>
          )
        }
      </Loaded>
      {making && (
        <NewKey account={account} onClose={() => setMaking(false)} onMade={dialogs.made} />
      )}
      {dialogs.dialog}
    </>
  );
}

/** Whether a key may be used. */
export function KeyStatus({ value }: { readonly value: Key }) {
  if (value.revoked_at !== null) return <Badge>revoked</Badge>;
  if (value.expires_at !== null && isPast(value.expires_at)) return <Badge>expired</Badge>;
  return value.status === "active" ? (
    <Badge tone="good">active</Badge>
  ) : (
    <Badge tone="warn">paused</Badge>
  );
}

function isPast(time: string): boolean {
  return Date.parse(time) <= Date.now();
}
