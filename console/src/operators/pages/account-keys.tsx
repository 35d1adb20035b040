import { useState } from "preact/hooks";
import { get, send } from "../../api/client.ts";
import type { Account, Key, ShownKey } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { ActionDialog, errorOf } from "../../components/dialog.tsx";
import { Choice, Field } from "../../components/field.tsx";
import { SecretDialog } from "../../components/secret.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Badge, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { useMay } from "../session.ts";
import { PauseKey, RevokeKey, RotateKey } from "./key-dialogs.tsx";

/** The keys of an account, with what can be done to each. */
export function AccountKeys({ account }: { readonly account: Account }) {
  const load = useLoad(`keys ${account.id}`, (signal) =>
    get<{ readonly data: readonly Key[] }>(`/accounts/${account.id}/keys`, { signal }),
  );
  const [making, setMaking] = useState(false);
  const [asked, setAsked] = useState<{
    readonly what: "pause" | "rotate" | "revoke";
    readonly key: Key;
  } | null>(null);
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
    { head: "Status", cell: (key) => <KeyStatus value={key} /> },
    { head: "May", cell: ({ scopes }) => scopes.join(", ") },
    {
      head: "Expires",
      cell: ({ expires_at: at }) => (at === null ? "never" : <Time at={at} ago />),
    },
    {
      head: "Last used",
      cell: ({ last_used_at: at }) => (at === null ? "never" : <Time at={at} ago />),
    },
    { head: "Made", cell: ({ created_at: at }) => <Time at={at} /> },
    {
      head: "",
      cell: (key) => (
        <div class="row-actions">
          <a href={linkTo(["receipts"], { key: key.id })}>Receipts</a>
          {mayChange && key.revoked_at === null && (
            <>
              <Button
                kind="quiet"
                label={`${key.status === "active" ? "Pause" : "Resume"} the key ${key.name}`}
                onClick={() => setAsked({ what: "pause", key })}
              >
                {key.status === "active" ? "Pause" : "Resume"}
              </Button>
              <Button
                kind="quiet"
                label={`Rotate the key ${key.name}`}
                onClick={() => setAsked({ what: "rotate", key })}
              >
                Rotate
              </Button>
              <Button
                kind="quiet"
                label={`Revoke the key ${key.name}`}
                onClick={() => setAsked({ what: "revoke", key })}
              >
                Revoke
              </Button>
            </>
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
      {asked?.what === "pause" && (
        <PauseKey value={asked.key} onClose={() => setAsked(null)} onDone={load.reload} />
      )}
      {asked?.what === "rotate" && (
        <RotateKey
          value={asked.key}
          onClose={() => setAsked(null)}
          onMade={(made) => {
            setSecret(made.secret);
            load.reload();
          }}
        />
      )}
      {asked?.what === "revoke" && (
        <RevokeKey value={asked.key} onClose={() => setAsked(null)} onDone={load.reload} />
      )}
      {secret !== null && (
        <SecretDialog what="key" secret={secret} onClose={() => setSecret(null)} />
      )}
    </>
  );
}

const dayMs = 86_400_000;

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
  const [expires, setExpires] = useState<"" | "1" | "30" | "90" | "365">("");
  const [scopes, setScopes] = useState<"both" | "generate" | "read">("both");
  return (
    <ActionDialog
      title={`New key of ${account.name}`}
      action="Make the key"
      onClose={onClose}
      run={async (once) => {
        const days = Number(expires);
        const body = {
          ...(name.trim() === "" ? {} : { name: name.trim() }),
          ...(expires === ""
            ? {}
            : { expires_at: new Date(Date.now() + days * dayMs).toISOString() }),
          ...(scopes === "both" ? {} : { scopes: [scopes] }),
        };
        onMade(await send<ShownKey>("POST", `/accounts/${account.id}/keys`, { body, once }));
      }}
    >
      {(error) => (
        <>
          <Field
            label="Name"
            value={name}
            onInput={setName}
            error={errorOf(error, "name")}
            placeholder="web"
            hint="Of the client that uses it."
            autoFocus
          />
          <Choice
            label="May"
            value={scopes}
            onChange={setScopes}
            choices={[
              ["both", "generate and read"],
              ["generate", "generate"],
              ["read", "read: look at the account, never spend"],
            ]}
          />
          <Choice
            label="Expires"
            value={expires}
            onChange={setExpires}
            choices={[
              ["", "never"],
              ["1", "in a day"],
              ["30", "in 30 days"],
              ["90", "in 90 days"],
              ["365", "in a year"],
            ]}
          />
        </>
      )}
    </ActionDialog>
  );
}

/** Whether a key may be used. */
function KeyStatus({ value }: { readonly value: Key }) {
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
