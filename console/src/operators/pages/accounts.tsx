import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import type { Account } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { Field } from "../../components/field.tsx";
import { filled, FormDialog } from "../../components/form-dialog.tsx";
import { PageHead } from "../../components/page.tsx";
import { Empty } from "../../components/state.tsx";
import { amountColumn, type Column, nameColumn, PagedTable } from "../../components/table.tsx";
import { Badge } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { goTo } from "../../router.ts";
import { useMay } from "../session.ts";
import { Spend } from "./spend.tsx";

const columns: readonly Column<Account>[] = [
  nameColumn("Account", "accounts"),
  {
    head: "External id",
    cell: ({ external_id: external }) => external !== null && <code>{external}</code>,
  },
  { head: "Status", cell: ({ status }) => <AccountStatus status={status} /> },
  amountColumn("Balance", ({ balance }) => balance),
  amountColumn("Held", ({ held }) => held),
  amountColumn("Available", ({ available }) => available),
  { head: "Charged in 30 days", numeric: true, cell: ({ id }) => <Spend account={id} /> },
];

/** Every account with what it has, or those that the address searches for. */
export function AccountsPage({ query }: { readonly query: URLSearchParams }) {
  const [making, setMaking] = useState(false);
  const mayMake = useMay("billing");
  const search = query.get("search") ?? "";
  const make = mayMake && (
    <Button kind="main" onClick={() => setMaking(true)}>
      New account
    </Button>
  );
  return (
    <>
      <PageHead title="Accounts" actions={make}>
        <span class="quiet">Amounts are credits.</span>
      </PageHead>
      <SearchForm key={search} search={search} />
      <PagedTable
        caption="Accounts"
        path="/accounts"
        query={{ search }}
        columns={columns}
        idOf={({ id }) => id}
        empty={
          search === "" ? (
            <Empty title="There is no account yet">
              <p>An account has credit, and keys that spend it.</p>
              {make || (
                <p class="quiet">An operator with the role billing or owner makes accounts.</p>
              )}
            </Empty>
          ) : (
            <Empty title="No account is like that">
              <p>
                A search looks for a part of the name, the id or the external id.{" "}
                <a href={linkTo(["accounts"])}>Show all accounts</a>
              </p>
            </Empty>
          )
        }
      />
      {making && <NewAccount onClose={() => setMaking(false)} />}
    </>
  );
}

function SearchForm({ search }: { readonly search: string }) {
  const [wanted, setWanted] = useState(search);
  return (
    <form
      class="filters filters-search"
      role="search"
      aria-label="Which accounts"
      onSubmit={(event) => {
        event.preventDefault();
        goTo(linkTo(["accounts"], { search: wanted.trim() }));
      }}
    >
      <Field
        label="Search"
        value={wanted}
        onInput={setWanted}
        placeholder="Name, id or external id"
      />
      <div class="actions">
        <Button type="submit">Show</Button>
        {search !== "" && <a href={linkTo(["accounts"])}>All</a>}
      </div>
    </form>
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
        external: {
          label: "External id",
          hint: "What another system calls it. No two accounts share one.",
          param: "external_id",
        },
      }}
      run={async (once, { credit, external, name }) => {
        const rest = filled({ credit: credit.trim(), external_id: external.trim() });
        const body = { name: name.trim(), ...rest };
        const made = await send<Account>("POST", "/accounts", { body, once });
        goTo(linkTo(["accounts", made.id]));
      }}
    />
  );
}
