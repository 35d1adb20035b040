import { useState } from "preact/hooks";
import { useLoad } from "../api/use-load.ts";
import { Button } from "../components/button.tsx";
import { Field } from "../components/field.tsx";
import { Mark } from "../components/mark.tsx";
import { Facts, Figure, Figures, PageHead, Section } from "../components/page.tsx";
import { Loaded } from "../components/state.tsx";
import { Table } from "../components/table.tsx";
import { Badge, Credits, Time } from "../components/text.tsx";
import { ThemeChoice } from "../components/theme.tsx";
import { Toasts } from "../components/toast.tsx";
import { Playground } from "../playground/playground.tsx";
import { countText } from "../words.ts";
import { askAsCaller, type CallerAccount } from "./ask-as-caller.ts";

const everyMs = 5_000;

/** What a caller sees with a key: the account, what runs, the playground. The key is in this page's memory alone. */
export function App() {
  const [key, setKey] = useState("");
  return (
    <>
      <header class="top">
        <span class="brand">
          <Mark /> Tributary
        </span>
        <div class="actions">
          <ThemeChoice />
          {key !== "" && (
            <Button kind="quiet" onClick={() => setKey("")}>
              Forget the key
            </Button>
          )}
        </div>
      </header>
      <main class="callers">
        {key === "" ? <KeyForm onKey={setKey} /> : <AccountOfKey value={key} onKey={setKey} />}
      </main>
      <Toasts />
    </>
  );
}

function KeyForm({ onKey }: { readonly onKey: (key: string) => void }) {
  const [typed, setTyped] = useState("");
  return (
    <div class="card sign-in">
      <h1>Your account</h1>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onKey(typed.trim());
        }}
      >
        <Field
          label="API key"
          type="password"
          placeholder="trib_…"
          value={typed}
          onInput={setTyped}
          hint="It stays in this page's memory: a reload forgets it."
          required
          autoFocus
        />
        <Button type="submit" kind="main">
          Show the account
        </Button>
      </form>
    </div>
  );
}

function AccountOfKey({
  onKey,
  value,
}: {
  readonly value: string;
  readonly onKey: (key: string) => void;
}) {
  const load = useLoad(
    `account ${value}`,
    (signal) => askAsCaller<CallerAccount>("/account", value, signal),
    everyMs,
  );
  return (
    <Loaded load={load} what="the account" head={<PageHead title="Your account" />}>
      {(account) => <AccountView account={account} secret={value} onKey={onKey} />}
    </Loaded>
  );
}

function AccountView({
  account,
  onKey,
  secret,
}: {
  readonly account: CallerAccount;
  readonly secret: string;
  readonly onKey: (key: string) => void;
}) {
  const { budget, budget_ends_at: ends, budget_left: left, limits, prices } = account;
  return (
    <>
      <PageHead
        title={account.name}
        badge={<Badge tone={account.status === "active" ? "good" : "bad"}>{account.status}</Badge>}
      >
        <code class="quiet">{account.id}</code>
      </PageHead>
      <Figures>
        <Figure name="Available" note="credits for the next request">
          <Credits amount={account.available} />
        </Figure>
        <Figure name="Balance" note="credits">
          <Credits amount={account.balance} />
        </Figure>
        <Figure name="Held" note="by requests that run">
          <Credits amount={account.held} />
        </Figure>
        {budget !== null && budget !== undefined && left !== null && left !== undefined && (
          <Figure
            name="Left of this key's budget"
            note={
              <>
                of {budget.amount} a {budget.period}
                {ends !== null && ends !== undefined && (
                  <>
                    , until <Time at={ends} />
                  </>
                )}
              </>
            }
          >
            <Credits amount={left} />
          </Figure>
        )}
      </Figures>
      <Facts
        rows={[
          [
            "Input",
            <>
              <Credits amount={prices.input} /> credits a million tokens
            </>,
          ],
          [
            "Output",
            <>
              <Credits amount={prices.output} /> credits a million tokens
            </>,
          ],
          ["At once", `${countText(limits.concurrent_requests)} requests`],
          [
            "A minute",
            `${countText(limits.requests_per_minute)} requests, ${countText(limits.requests_remaining)} left`,
          ],
          ["Output at most", `${countText(limits.output_allowance_max)} tokens`],
        ]}
      />
      {account.running_requests.length > 0 && (
        <Section title="Running now">
          <Table
            caption="Running requests"
            rows={account.running_requests}
            idOf={({ id }) => id}
            columns={[
              { head: "Request", names: true, cell: ({ id }) => <code>{id}</code> },
              { head: "Since", cell: ({ admitted_at: at }) => <Time at={at} ago /> },
              { head: "Format", cell: ({ format }) => format },
              {
                head: "Holds",
                numeric: true,
                cell: ({ reserved }) => <Credits amount={reserved} />,
              },
            ]}
          />
        </Section>
      )}
      <Section title="Playground" hint="Each request is charged to this account, as any other.">
        <Playground
          secret={secret}
          keyField={
            <Field
              label="API key"
              type="password"
              value={secret}
              onInput={(next) => next.trim() !== "" && onKey(next.trim())}
            />
          }
          costOf={(id) => <Cost key={id} id={id} secret={secret} />}
          url={location.origin}
        />
      </Section>
    </>
  );
}

interface CallerReceipt {
  readonly state: string;
  readonly charged: string | null;
}

const settledEveryMs = 500;

function Cost({ id, secret }: { readonly id: string; readonly secret: string }) {
  const [settled, setSettled] = useState(false);
  const { data } = useLoad(
    `receipt ${id}`,
    async (signal) => {
      const receipt = await askAsCaller<CallerReceipt>(`/receipts/${id}`, secret, signal);
      setSettled(receipt.state !== "open");
      return receipt;
    },
    settled ? null : settledEveryMs,
  );
  const charged = data?.charged ?? null;
  return charged === null ? <>–</> : <Credits amount={charged} />;
}
