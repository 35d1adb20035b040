import { get } from "../../api/client.ts";
import type { Usage } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Sparkline } from "../../components/sparkline.tsx";
import { decimalsOf, Padding } from "../../components/table.tsx";
import { Credits } from "../../components/text.tsx";
import { textOf, unitsOf } from "../../exact.ts";
import { linkTo } from "../../place.ts";
import { bucketsOf } from "../../time-ranges.ts";

interface Charges {
  /** Of each account what it was charged on each day, in 1e-9 credit, and in all. */
  readonly of: ReadonlyMap<string, { readonly nanos: readonly bigint[]; readonly sum: string }>;
  /** Decimals of the longest sum. */
  readonly decimals: number;
}
let together: { readonly accounts: string[]; readonly charges: Promise<Charges> } | null = null;

/** One question for the accounts of all rows that are shown at once. */
function chargesOf(account: string): Promise<Charges> {
  if (together === null) {
    const accounts: string[] = [];
    together = { accounts, charges: Promise.resolve(accounts).then(askCharges) };
  }
  together.accounts.push(account);
  return together.charges;
}

async function askCharges(accounts: readonly string[]): Promise<Charges> {
  together = null;
  const days = bucketsOf("30d", Date.now());
  const since = new Date(days[0] ?? 0).toISOString();
  const query = { by: "day,account", account: accounts.join(","), since };
  const { data } = await get<{ readonly data: readonly Usage[] }>("/usage", { query });
  const of = new Map(
    accounts.map((account) => {
      const its = data.filter((row) => row.account === account);
      const charged = new Map(its.map(({ charged: sum, day = "" }) => [Date.parse(day), sum]));
      const nanos = days.map((day) => unitsOf(charged.get(day) ?? "0", 9));
      const total = nanos.reduce((sum, one) => sum + one, 0n);
      return [account, { nanos, sum: textOf(total, 9) }] as const;
    }),
  );
  return { of, decimals: Math.max(...[...of.values()].map(({ sum }) => decimalsOf(sum))) };
}

/** What an account was charged, day by day. */
export function Spend({ account }: { readonly account: string }) {
  const { data, error } = useLoad(`spend of ${account}`, () => chargesOf(account));
  const its = data?.of.get(account);
  // As wide and as tall as what comes, so that no row moves.
  if (data === null || its === undefined)
    return (
      <span class="spend">
        <Sparkline values={[]} /> <span class="number quiet">{error === null ? "…" : "–"}</span>
      </span>
    );
  return (
    <a class="spend" href={linkTo(["accounts", account], { tab: "usage", range: "30d" })}>
      <Sparkline values={its.nanos.map(Number)} />{" "}
      <span>
        <Credits amount={its.sum} />
        <Padding decimals={data.decimals} amount={its.sum} />
      </span>
    </a>
  );
}
