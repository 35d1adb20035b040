import { useAsk } from "../../api/ask.ts";
import { useLoad } from "../../api/use-load.ts";
import { BudgetFigures } from "../../components/budget-figures.tsx";
import { Facts, Figure, Figures, PageHead, Section } from "../../components/page.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { amountColumn, type Column, Table } from "../../components/table.tsx";
import { Badge, Credits, Id, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { formatColumn, requestColumn } from "../../receipts/request-columns.tsx";
import { UsageOverview } from "../../usage/usage-overview.tsx";
import { countText } from "../../words.ts";
import type { CallerAccount } from "../ask-as-caller.ts";

const everyMs = 5_000;

/** What the account of the key has, may and used. */
export function AccountPage({ query }: { readonly query: URLSearchParams }) {
  const ask = useAsk();
  const load = useLoad("account", (signal) => ask<CallerAccount>("/account", { signal }), everyMs);
  return (
    <Loaded load={load} what="the account" head={<PageHead title="Your account" />}>
      {(account) => (
        <>
          <AccountView account={account} />
          <Section title="Usage" hint="Of all keys of the account.">
            <UsageOverview
              path="/account/usage"
              place={{ path: [] }}
              query={query}
              empty={
                <Empty title="No request ended in this time">
                  <p>
                    Ask something in the <a href={linkTo(["playground"])}>playground</a>, or take
                    the lines for a <a href={linkTo(["clients"])}>client</a>.
                  </p>
                </Empty>
              }
            />
          </Section>
        </>
      )}
    </Loaded>
  );
}

function AccountView({ account }: { readonly account: CallerAccount }) {
  const { limits, prices, running_requests: running } = account;
  return (
    <>
      <PageHead
        title={account.name}
        badge={<Badge tone={account.status === "active" ? "good" : "bad"}>{account.status}</Badge>}
      >
        <Id>{account.id}</Id>
      </PageHead>
      <Figures>
        <Figure name="Available" note="credits for the next request">
          <Credits amount={account.available} />
        </Figure>
        <Figure name="Balance" note="credits">
          <Credits amount={account.balance} />
        </Figure>
        <Figure name="Held" note="credits, by requests that run">
          <Credits amount={account.held} />
        </Figure>
      </Figures>
      {account.budget !== null && (
        <Section title="Budget of this key">
          <BudgetFigures of={account} />
        </Section>
      )}
      <Section title="Prices" hint="Credits for a million tokens.">
        <Facts
          rows={[
            ["Input", <Credits amount={prices.input} />],
            ["Cached input", <Credits amount={prices.cached_input} />],
            ["Output", <Credits amount={prices.output} />],
          ]}
        />
      </Section>
      <Section title="Limits">
        <Facts
          rows={[
            ["Requests at once", countText(limits.concurrent_requests)],
            [
              "Requests a minute",
              `${countText(limits.requests_per_minute)}, ${countText(limits.requests_remaining)} left`,
            ],
            ["Output tokens", `${countText(limits.output_allowance_max)} of one answer`],
          ]}
        />
      </Section>
      {running.length > 0 && (
        <Section title="Running now">
          <Table
            caption="Running requests"
            columns={runningColumns}
            rows={running.toSorted(
              (one, other) => Date.parse(other.admitted_at) - Date.parse(one.admitted_at),
            )}
            idOf={({ id }) => id}
          />
        </Section>
      )}
    </>
  );
}

const runningColumns: readonly Column<CallerAccount["running_requests"][number]>[] = [
  requestColumn,
  { head: "Began", cell: ({ admitted_at: at }) => <Time at={at} ago /> },
  formatColumn,
  amountColumn("Credits held", ({ reserved }) => reserved),
];
