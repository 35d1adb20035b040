import { useState } from "preact/hooks";
import { get, send } from "../../api/client.ts";
import type { Account, Key, ShownKey } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { ActionDialog, errorOf } from "../../components/dialog.tsx";
import { Field } from "../../components/field.tsx";
import { SecretDialog } from "../../components/secret.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Badge, Time } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { linkTo } from "../../place.ts";
import { useMay } from "../session.ts";

/** The keys of an account, with what can be done to each. */
export function AccountKeys({ account }: { readonly account: Account }) {
  const load = useLoad(`keys ${account.id}`, (signal) =>
    get<{ readonly data: readonly Key[] }>(`/accounts/${account.id}/keys`, { signal }),
  );
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const mayChange = useMay("billing");
  const make = mayChange && (
    <Button kind="main" onClick={() => setMaking(true)}>
      New key
    </Button>
  );
  const columns: readonly Column<Key>[] = [
    {
      head: "Key",
      names: true,
      cell: ({ id, name }) => (
        <>
          {name} <code class="quiet">{id}</code>
        </>
      ),
    },
    {
      head: "Status",
      cell: ({ revoked_at: revoked }) =>
        revoked === null ? <Badge tone="good">active</Badge> : <Badge>revoked</Badge>,
    },
    { head: "Made", cell: ({ created_at: at }) => <Time at={at} /> },
    {
      head: "",
      cell: (key) => (
        <div class="row-actions">
          <a href={linkTo(["receipts"], { key: key.id })}>Receipts</a>
          {mayChange && key.revoked_at === null && (
            <Button
              kind="quiet"
              label={`Revoke the key ${key.name}`}
              onClick={() => setRevoking(key)}
            >
              Revoke
            </Button>
          )}
        </div>
      ),
    },
  ];
  return (
    <>
      <Loaded load={load} what="the keys">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="This account has no key">
              <p>A client sends a key with each request. Make one for each client.</p>
              {make}
            </Empty>
          ) : (
            <>
              <div class="actions actions-above">{make}</div>
              <Table caption="Keys" columns={columns} rows={data} idOf={({ id }) => id} />
            </>
          )
        }
      </Loaded>
      {making && (
        <NewKey
          account={account}
          onClose={() => setMaking(false)}
          onMade={(made) => {
            setSecret(made.secret);
            load.reload();
          }}
        />
      )}
      {revoking !== null && (
        <RevokeKey value={revoking} onClose={() => setRevoking(null)} onDone={load.reload} />
      )}
      {secret !== null && (
        <SecretDialog what="key" secret={secret} onClose={() => setSecret(null)} />
      )}
    </>
  );
}

function NewKey({
  account,
  onClose,
  onMade,
}: {
  readonly account: Account;
  readonly onClose: () => void;
  readonly onMade: (key: ShownKey) => void;
}) {
  const [name, setName] = useState("");
  return (
    <ActionDialog
      title={`New key of ${account.name}`}
      action="Make the key"
      onClose={onClose}
      run={async (once) => {
        const body = name.trim() === "" ? {} : { name: name.trim() };
        onMade(await send<ShownKey>("POST", `/accounts/${account.id}/keys`, { body, once }));
      }}
    >
      {(error) => (
        <Field
          label="Name"
          value={name}
          onInput={setName}
          error={errorOf(error, "name")}
          placeholder="web"
          hint="Of the client that uses it."
          autoFocus
        />
      )}
    </ActionDialog>
  );
}

function RevokeKey({
  onClose,
  onDone,
  value,
}: {
  readonly value: Key;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  return (
    <ActionDialog
      title={`Revoke the key ${value.name}?`}
      action="Revoke the key"
      danger
      onClose={onClose}
      run={async (once) => {
        await send("DELETE", `/keys/${value.id}`, { once });
        say(`${value.name} is revoked`);
        onDone();
      }}
    >
      {() => (
        <p>
          From the next request on it is answered 401, for good: a revoked key cannot be brought
          back. What runs with it ends as it would.
        </p>
      )}
    </ActionDialog>
  );
}
