import { get } from "../../api/client.ts";
import type { Usage } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Sparkline } from "../../components/sparkline.tsx";
import { Credits } from "../../components/text.tsx";
import { textOf, unitsOf } from "../../exact.ts";
import { linkTo } from "../../place.ts";
import { bucketsOf } from "../../time-ranges.ts";

type Charges = { readonly days: readonly number[]; readonly rows: readonly Usage[] };
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
  return { days, rows: data };
}

/** What an account was charged, day by day. */
export function Spend({ account }: { readonly account: string }) {
  const { data, error } = useLoad(`spend of ${account}`, async () => {
    const { days, rows } = await chargesOf(account);
    const its = rows.filter((row) => row.account === account);
    const charged = new Map(its.map(({ charged: sum, day = "" }) => [Date.parse(day), sum]));
    return days.map((day) => unitsOf(charged.get(day) ?? "0", 9));
  });
  // As wide and as tall as what comes, so that no row moves.
  if (data === null)
    return (
      <span class="spend">
        <Sparkline values={[]} /> <span class="number quiet">{error === null ? "…" : "–"}</span>
      </span>
    );
  const sum = textOf(
    data.reduce((total, nanos) => total + nanos, 0n),
    9,
  );
  return (
    <a class="spend" href={linkTo(["accounts", account], { tab: "usage", range: "30d" })}>
      <Sparkline values={data.map(Number)} /> <Credits amount={sum} />
    </a>
  );
}
