import { useState } from "preact/hooks";
import { get } from "../../api/client.ts";
import type { Account, Key, ShownKey } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { useSecret } from "../../components/secret.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { type Column, nameColumn, Table } from "../../components/table.tsx";
import { Badge, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { useMay } from "../session.ts";
import { NewKey, PauseKey, RevokeKey, RotateKey } from "./key-dialogs.tsx";

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
  const secret = useSecret("key");
  const mayChange = useMay("billing");
  const made = (key: ShownKey): void => {
    secret.show(key.secret);
    load.reload();
  };
  const make = mayChange && (
    <Button kind="main" onClick={() => setMaking(true)}>
      New key
    </Button>
  );
  const columns: readonly Column<Key>[] = [
    nameColumn("Key"),
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
      {making && <NewKey account={account} onClose={() => setMaking(false)} onMade={made} />}
      {asked?.what === "pause" && (
        <PauseKey value={asked.key} onClose={() => setAsked(null)} onDone={load.reload} />
      )}
      {asked?.what === "rotate" && (
        <RotateKey value={asked.key} onClose={() => setAsked(null)} onMade={made} />
      )}
      {asked?.what === "revoke" && (
        <RevokeKey value={asked.key} onClose={() => setAsked(null)} onDone={load.reload} />
      )}
      {secret.dialog}
    </>
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
