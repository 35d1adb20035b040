import { useState } from "preact/hooks";
import type { Account } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { Facts, Section } from "../../components/page.tsx";
import { Credits, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { countText } from "../../words.ts";
import { useMay } from "../session.ts";
import { AboutDialog, GrantDialog, LimitsDialog, StopGrant } from "./account-settings-dialogs.tsx";

type Asked = "about" | "limits" | "grant" | "stop-grant";

/** What operators have set of an account, each part with what changes it. */
export function AccountSettings({
  account,
  onDone,
}: {
  readonly account: Account;
  readonly onDone: () => Promise<void>;
}) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const mayChange = useMay("billing");
  const shared = { account, onClose: () => setAsked(null), onDone };
  const ask = (what: Asked, words: string, label: string) =>
    mayChange && (
      <Button label={label} onClick={() => setAsked(what)}>
        {words}
      </Button>
    );
  return (
    <>
      <Section title="About" actions={ask("about", "Change", "Change the name, prices and more")}>
        <Facts rows={aboutRows(account)} />
      </Section>
      <Section
        title="Limits"
        hint="A limit holds from the next request on. More output than is allowed is cut, never refused."
        actions={ask("limits", "Change", "Change the limits")}
      >
        <Facts rows={limitRows(account)} />
      </Section>
      <Section
        title="Grant"
        hint="Credit that the account is given at the begin of each period."
        actions={
          <>
            {account.grant === null
              ? ask("grant", "Set a grant", "Set a grant")
              : ask("grant", "Change", "Change the grant")}
            {account.grant !== null && ask("stop-grant", "Stop", "Stop the grant")}
          </>
        }
      >
        <Facts rows={grantRows(account)} />
      </Section>
      {asked === "about" && <AboutDialog {...shared} />}
      {asked === "limits" && <LimitsDialog {...shared} />}
      {asked === "grant" && <GrantDialog {...shared} />}
      {asked === "stop-grant" && <StopGrant {...shared} />}
    </>
  );
}

type Rows = Parameters<typeof Facts>[0]["rows"];

const none = <span class="quiet">none</span>;

function aboutRows(account: Account): Rows {
  const { external_id: external, low_balance_at: low, metadata, name, price_list: list } = account;
  return [
    ["Name", name],
    ["External id", external === null ? none : <code>{external}</code>],
    [
      "Price list",
      <>
        <a href={linkTo(["prices"])}>{list ?? "default"}</a>
        {list === null && <span class="quiet"> as all without a list of their own</span>}
      </>,
    ],
    ["Low balance", low === null ? none : <Credits amount={low} unit />],
    ...Object.entries(metadata).map(([title, value]) => [title, value] as const),
  ];
}

function limitRows({ limits }: Account): Rows {
  return [
    ["Requests at once", limit(limits.concurrent_requests)],
    ["Requests a minute", limit(limits.requests_per_minute)],
    ["Output tokens", limit(limits.output_tokens_max)],
  ];
}

function grantRows({ grant, grant_left: left, grant_next_at: next }: Account): Rows {
  const rest: Rows = [["Left of grants", <Credits amount={left} unit />]];
  if (grant === null) return left === "0" ? [["Grant", none]] : [["Grant", none], ...rest];
  return [
    [
      "Grant",
      <>
        <Credits amount={grant.amount} unit /> each {grant.every} of {grant.timezone}
      </>,
    ],
    ["What is left", grant.carry_over ? "is carried over" : "goes when the next one comes"],
    ...rest,
    ["Next grant", next === null ? none : <Time at={next} />],
  ];
}

function limit(count: number | null) {
  return count === null ? (
    <a href={linkTo(["settings"])}>as the service's settings</a>
  ) : (
    <span class="number">{countText(count)}</span>
  );
}
