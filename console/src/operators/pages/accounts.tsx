import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import type { Account } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { PageHead } from "../../components/page.tsx";
import { Empty } from "../../components/state.tsx";
import { type Column, PagedTable } from "../../components/table.tsx";
import { Badge, Credits, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { goTo } from "../../router.ts";
import { useMay } from "../session.ts";

const columns: readonly Column<Account>[] = [
  {
    head: "Account",
    names: true,
    cell: ({ id, name }) => (
      <>
        <a href={linkTo(["accounts", id])}>{name}</a> <code class="quiet">{id}</code>
      </>
    ),
  },
  { head: "Status", cell: ({ status }) => <AccountStatus status={status} /> },
  { head: "Balance", numeric: true, cell: ({ balance }) => <Credits amount={balance} /> },
  { head: "Held", numeric: true, cell: ({ held }) => <Credits amount={held} /> },
  { head: "Available", numeric: true, cell: ({ available }) => <Credits amount={available} /> },
  { head: "Made", cell: ({ created_at: at }) => <Time at={at} /> },
];

/** Every account with what it has. */
export function AccountsPage({ query }: { readonly query: URLSearchParams }) {
  const [making, setMaking] = useState(false);
  const mayMake = useMay("billing");
  void query;
  const make = mayMake && (
    <Button kind="main" onClick={() => setMaking(true)}>
      New account
    </Button>
  );
  return (
    <>
      <PageHead title="Accounts" actions={make} />
      <PagedTable
        caption="Accounts"
        path="/accounts"
        columns={columns}
        idOf={({ id }) => id}
        empty={
          <Empty title="There is no account yet">
            <p>An account has credit, and keys that spend it. Make the first one.</p>
            {make}
          </Empty>
        }
      />
      {making && <NewAccount onClose={() => setMaking(false)} />}
    </>
  );
}

/** Whether an account may generate. */
export function AccountStatus({ status }: Pick<Account, "status">) {
  return <Badge tone={status === "active" ? "good" : "bad"}>{status}</Badge>;
}

function NewAccount({ onClose }: { readonly onClose: () => void }) {
  return (
    <FormDialog
      title="New account"
      action="Make the account"
      onClose={onClose}
      fields={{
        name: { label: "Name", required: true },
        credit: {
          label: "Credit to begin with",
          inputMode: "decimal",
          placeholder: "0",
          hint: "In credits, such as 10 or 0.25. More can be added at any time.",
        },
      }}
      run={async (once, { credit, name }) => {
        const body = { name: name.trim(), ...(credit === "" ? {} : { credit: credit.trim() }) };
        const made = await send<Account>("POST", "/accounts", { body, once });
        goTo(linkTo(["accounts", made.id]));
      }}
    />
  );
}
