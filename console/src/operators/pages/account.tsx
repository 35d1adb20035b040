import { useState } from "preact/hooks";
import { get } from "../../api/client.ts";
import type { Account } from "../../api/types.ts";
import { type Load, useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { Figure, Figures, PageHead, Tabs } from "../../components/page.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { Credits, Id, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { UsageOverview } from "../../usage/usage-overview.tsx";
import { useMay } from "../session.ts";
import { CreditDialog, StatusDialog } from "./account-dialogs.tsx";
import { AccountEntries } from "./account-entries.tsx";
import { AccountKeys } from "./account-keys.tsx";
import { AccountSettings } from "./account-settings.tsx";
import { AccountStatements } from "./account-statements.tsx";
import { AccountStatus } from "./accounts.tsx";
import { ReceiptTable } from "../../receipts/receipt-table.tsx";

/** One account: what it has, its keys, its movements, its receipts. */
export function AccountPage({
  id,
  query,
}: {
  readonly id: string;
  readonly query: URLSearchParams;
}) {
  const load = useLoad(`account ${id}`, (signal) =>
    get<Account>(`/accounts/${encodeURIComponent(id)}`, { signal }),
  );
  return (
    <Loaded
      load={load}
      what="the account"
      head={<PageHead title="Account" trail={[["Accounts", linkTo(["accounts"])]]} />}
      missing={
        <p>
          <a href={linkTo(["accounts"])}>Show all accounts</a>
        </p>
      }
    >
      {(account) => <AccountView account={account} load={load} query={query} />}
    </Loaded>
  );
}

type Asked = "top-up" | "take-back" | "status";

function AccountView({
  account,
  load,
  query,
}: {
  readonly account: Account;
  readonly load: Load<Account>;
  readonly query: URLSearchParams;
}) {
  const { grant, id, name, status } = account;
  const tab = query.get("tab") ?? "keys";
  const [asked, setAsked] = useState<Asked | null>(null);
  const [turn, setTurn] = useState(0);
  const mayChange = useMay("billing");
  const close = (): void => setAsked(null);
  const done = (): Promise<void> => {
    setTurn(turn + 1);
    return load.reload();
  };
  const shared = { account, onClose: close, onDone: done };
  return (
    <>
      <PageHead
        title={name}
        trail={[["Accounts", linkTo(["accounts"])]]}
        badge={<AccountStatus status={status} />}
        actions={
          mayChange && (
            <>
              <Button kind="main" onClick={() => setAsked("top-up")}>
                Top up
              </Button>
              <Button onClick={() => setAsked("take-back")}>Take back</Button>
              <Button
                kind={status === "active" ? "danger" : "plain"}
                onClick={() => setAsked("status")}
              >
                {status === "active" ? "Disable" : "Enable"}
              </Button>
            </>
          )
        }
      >
        <Id>{id}</Id>
        <span class="quiet">
          made <Time at={account.created_at} />
        </span>
      </PageHead>
      <Figures>
        <Figure name="Balance" note="credits">
          <Credits amount={account.balance} />
        </Figure>
        <Figure name="Held" note="credits, by requests that run" href={linkTo(["running"])}>
          <Credits amount={account.held} />
        </Figure>
        <Figure name="Available" note="credits for the next request">
          <Credits amount={account.available} />
        </Figure>
        {(grant !== null || account.grant_left !== "0") && (
          <Figure
            name="Left of grants"
            href={linkTo(["accounts", id], { tab: "settings" })}
            note={
              grant === null ? (
                "credits in the balance"
              ) : (
                <>
                  of {grant.amount} credits each {grant.every}
                </>
              )
            }
          >
            <Credits amount={account.grant_left} />
          </Figure>
        )}
      </Figures>
      <Tabs
        label="Parts of the account"
        current={tab}
        tabs={[
          ["keys", "Keys", linkTo(["accounts", id])],
          ["entries", "Movements", linkTo(["accounts", id], { tab: "entries" })],
          ["usage", "Usage", linkTo(["accounts", id], { tab: "usage" })],
          ["receipts", "Receipts", linkTo(["accounts", id], { tab: "receipts" })],
          ["statements", "Statements", linkTo(["accounts", id], { tab: "statements" })],
          ["settings", "Settings", linkTo(["accounts", id], { tab: "settings" })],
        ]}
      />
      {tab === "entries" && <AccountEntries id={id} turn={turn} />}
      {tab === "receipts" && <ReceiptTable filters={{ account: id }} />}
      {tab === "keys" && <AccountKeys account={account} />}
      {tab === "usage" && (
        <UsageOverview
          path="/usage"
          filters={{ account: id }}
          place={{ path: ["accounts", id], query: { tab } }}
          query={query}
          empty={
            <Empty title="No request of this account ended in this time">
              <p>
                Choose a longer one, or send a request with one of its keys from the{" "}
                <a href={linkTo(["playground"])}>playground</a>.
              </p>
            </Empty>
          }
        />
      )}
      {tab === "statements" && <AccountStatements account={account} query={query} />}
      {tab === "settings" && <AccountSettings account={account} onDone={done} />}
      {asked === "top-up" && <CreditDialog {...shared} kind="top-up" />}
      {asked === "take-back" && <CreditDialog {...shared} kind="take-back" />}
      {asked === "status" && <StatusDialog {...shared} />}
    </>
  );
}
