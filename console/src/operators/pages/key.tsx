import { get } from "../../api/client.ts";
import type { Key } from "../../api/types.ts";
import { type Load, useLoad } from "../../api/use-load.ts";
import { BudgetFigures, periodWords } from "../../components/budget-figures.tsx";
import { Facts, PageHead, Section } from "../../components/page.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { Id, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { AccountName, useAccountName } from "../../receipts/account-name.tsx";
import { ReceiptTable } from "../../receipts/receipt-table.tsx";
import { countText } from "../../words.ts";
import { useMay } from "../session.ts";
import { KeyStatus } from "./account-keys.tsx";
import { useKeyDialogs } from "./use-key-dialogs.tsx";

/** One key: what it may, what is left of its budget, its receipts. */
export function KeyPage({ id }: { readonly id: string }) {
  const load = useLoad(`key ${id}`, (signal) =>
    get<Key>(`/keys/${encodeURIComponent(id)}`, { signal }),
  );
  return (
    <Loaded
      load={load}
      what="the key"
      head={<PageHead title="Key" />}
      missing={
        <p>
          The keys of an account are on its page.{" "}
          <a href={linkTo(["accounts"])}>Show all accounts</a>
        </p>
      }
    >
      {(key) => <KeyView value={key} load={load} />}
    </Loaded>
  );
}

function KeyView({ load, value }: { readonly value: Key; readonly load: Load<Key> }) {
  const dialogs = useKeyDialogs(load.reload);
  const mayChange = useMay("billing");
  const account = useAccountName(value.account);
  const trail = [
    ["Accounts", linkTo(["accounts"])],
    [account ?? value.account, linkTo(["accounts", value.account])],
  ] as const;
  return (
    <>
      <PageHead
        title={value.name}
        trail={trail}
        badge={<KeyStatus value={value} />}
        actions={
          mayChange &&
          dialogs.buttons(value, ["edit", "budget", "pause", "rotate", "revoke"], "plain")
        }
      >
        <Id>{value.id}</Id>
        <span class="quiet">
          made <Time at={value.created_at} />
        </span>
      </PageHead>
      {value.budget !== null && <BudgetFigures of={value} />}
      <Facts rows={rowsOf(value)} />
      <Section title="Its receipts">
        <ReceiptTable
          filters={{ account: value.account, key: value.id }}
          empty={
            <Empty title="No request with this key yet">
              <p>Its requests stand here from their admission on.</p>
            </Empty>
          }
        />
      </Section>
      {dialogs.dialog}
    </>
  );
}

function rowsOf(key: Key): Parameters<typeof Facts>[0]["rows"] {
  const { expires_at: expires, last_used_at: used, limits, previous_secret_until: until } = key;
  return [
    ["Account", <AccountName id={key.account} />],
    ["Begins with", <code>{key.prefix}</code>],
    ["May", key.scopes.join(", ")],
    [
      "Budget",
      key.budget === null ? "none" : `${key.budget.amount} credits ${periodWords(key.budget)}`,
    ],
    ["Requests a minute", limit(limits.requests_per_minute)],
    ["Output tokens", limit(limits.output_tokens_max)],
    ["Expires", expires === null ? "never" : <Time at={expires} />],
    ["Last used", used === null ? "never" : <Time at={used} ago />],
    ...(until === null ? [] : [["Old secret until", <Time at={until} />] as const]),
  ];
}

function limit(count: number | null): string {
  return count === null ? "as its account" : countText(count);
}
