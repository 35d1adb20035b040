import { get, send } from "../../api/client.ts";
import type { Account, Page, PriceList } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import {
  asText,
  changed,
  changedCount,
  FormDialog,
  typedCount,
} from "../../components/form-dialog.tsx";
import { Credits, Time } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { timeZoneField } from "../../time-zones.ts";

interface DialogProps {
  readonly account: Account;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}

/** Changes the account as it was read; what was changed meanwhile is not overwritten. */
async function change({ account, onDone }: DialogProps, body: object): Promise<void> {
  await send("PATCH", `/accounts/${account.id}`, { body, version: account.version });
  say("Changed");
  await onDone();
}

/** Gives the account another name, price list, low balance, external id or metadata. */
export function AboutDialog(props: DialogProps) {
  const { account, onClose } = props;
  const lists = usePriceLists(account.price_list);
  const { external_id: external, low_balance_at: low, metadata, name } = account;
  const lines = linesOf(metadata);
  return (
    <FormDialog
      title={`Change ${name}`}
      action="Change the account"
      onClose={onClose}
      fields={{
        name: { label: "Name", initial: name, required: true },
        list: {
          label: "Price list",
          initial: account.price_list ?? "",
          choices: [["", "default"], ...lists],
        },
        low: {
          label: "Low balance",
          initial: low ?? "",
          inputMode: "decimal",
          hint: "In credits. A balance below it is an event, which webhooks get. Empty: none.",
          param: "low_balance_at",
        },
        external: {
          label: "External id",
          initial: external ?? "",
          hint: "What another system calls it. No two accounts share one.",
          param: "external_id",
        },
        metadata: {
          label: "Metadata",
          initial: lines,
          rows: 3,
          hint: "A pair a line: name = value.",
        },
      }}
      run={async (_once, typed) => {
        const pairs = pairsOf(typed.metadata, lines);
        await change(props, {
          name: typed.name.trim(),
          price_list: typed.list === "" ? null : typed.list,
          low_balance_at: changed(typed.low, low ?? "", asText),
          external_id: changed(typed.external, external ?? "", asText),
          ...(pairs === null ? {} : { metadata: pairs }),
        });
      }}
    />
  );
}

/** The names of all lists but `default`; the account's own is there at once. */
function usePriceLists(own: string | null): readonly (readonly [string, string])[] {
  const { data } = useLoad("names of price lists", (signal) =>
    get<Page<PriceList>>("/price_lists", { query: { limit: 500 }, signal }),
  );
  const names = new Set([...(own === null ? [] : [own]), ...(data?.data ?? []).map(nameOf)]);
  names.delete("default");
  return [...names].map((name) => [name, name] as const);
}

function nameOf({ name }: PriceList): string {
  return name;
}

/** Pairs as lines; one that no line can show stays as it is, as only lines that were changed are sent. */
function linesOf(metadata: Account["metadata"]): string {
  return Object.entries(metadata)
    .filter(([name, value]) => !/[=\n]/.test(name) && !value.includes("\n"))
    .map(([name, value]) => `${name} = ${value}`)
    .join("\n");
}

/** What of the lines is another than before; null: nothing. A pair that is gone is taken away. */
function pairsOf(typed: string, before: string): Readonly<Record<string, string | null>> | null {
  const [now, old] = [readPairs(typed), readPairs(before)];
  const pairs = new Map<string, string | null>();
  for (const name of old.keys()) if (!now.has(name)) pairs.set(name, null);
  for (const [name, value] of now) if (old.get(name) !== value) pairs.set(name, value);
  return pairs.size === 0 ? null : Object.fromEntries(pairs);
}

function readPairs(lines: string): ReadonlyMap<string, string> {
  return new Map(
    lines
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => {
        const [name = "", ...value] = line.split("=");
        return [name.trim(), value.join("=").trim()] as const;
      }),
  );
}

function limitField(
  label: string,
  count: number | null,
  rest: { readonly param: string; readonly hint?: string },
) {
  return { label, initial: typedCount(count), inputMode: "numeric", ...rest } as const;
}

/** Gives the account limits of its own. */
export function LimitsDialog(props: DialogProps) {
  const { limits } = props.account;
  return (
    <FormDialog
      title={`Limits of ${props.account.name}`}
      action="Set the limits"
      onClose={props.onClose}
      fields={{
        running: limitField("Requests at once", limits.concurrent_requests, {
          param: "limits.concurrent_requests",
          hint: "Of all its keys together.",
        }),
        minute: limitField("Requests a minute", limits.requests_per_minute, {
          param: "limits.requests_per_minute",
          hint: "For each of its keys.",
        }),
        output: limitField("Output tokens at most", limits.output_tokens_max, {
          param: "limits.output_tokens_max",
          hint: "Of one answer.",
        }),
      }}
      run={async (_once, { minute, output, running }) => {
        await change(props, {
          limits: {
            concurrent_requests: changedCount(running, limits.concurrent_requests),
            requests_per_minute: changedCount(minute, limits.requests_per_minute),
            output_tokens_max: changedCount(output, limits.output_tokens_max),
          },
        });
      }}
    >
      <p>An empty field takes the limit away: the service's settings count then.</p>
    </FormDialog>
  );
}

/** Grants the account credit at the begin of each period, or changes what it is granted. */
export function GrantDialog(props: DialogProps) {
  const { grant, grant_left: left, grant_next_at: next, name } = props.account;
  return (
    <FormDialog
      title={`Grant of ${name}`}
      action={grant === null ? "Set the grant" : "Change the grant"}
      onClose={props.onClose}
      fields={{
        amount: {
          label: "Amount in credits",
          initial: grant?.amount ?? "",
          inputMode: "decimal",
          required: true,
          param: "grant.amount",
        },
        every: {
          label: "Each",
          initial: grant?.every ?? "month",
          choices: [
            ["day", "day"],
            ["week", "week, on Monday"],
            ["month", "month, on the 1st"],
          ],
        },
        timezone: { ...timeZoneField(grant?.timezone ?? "UTC"), param: "grant.timezone" },
        carry: {
          label: "What is left of it",
          initial: grant?.carry_over === true ? "yes" : "no",
          choices: [
            ["no", "goes when the next one comes"],
            ["yes", "is carried over"],
          ],
        },
      }}
      run={async (_once, { amount, carry, every, timezone }) => {
        await change(props, {
          grant: {
            amount: amount.trim(),
            every,
            timezone: timezone.trim(),
            carry_over: carry === "yes",
          },
        });
      }}
    >
      {grant === null ? (
        <p>
          The first one is paid at once, whole. Charges are taken from it before what was paid for.
        </p>
      ) : (
        <p>
          <Credits amount={left} unit /> are left of grants.
          {next !== null && (
            <>
              {" "}
              A change holds from the next one on, at <Time at={next} />.
            </>
          )}
        </p>
      )}
    </FormDialog>
  );
}

/** Ends the grant of the account. */
export function StopGrant(props: DialogProps) {
  return (
    <FormDialog
      title={`Stop the grant of ${props.account.name}?`}
      action="Stop the grant"
      danger
      onClose={props.onClose}
      run={() => change(props, { grant: null })}
    >
      <p>
        No further credit comes by itself. The <Credits amount={props.account.grant_left} unit />{" "}
        that are left of grants stay in the balance.
      </p>
    </FormDialog>
  );
}
