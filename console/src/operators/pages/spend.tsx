import { get } from "../../api/client.ts";
import type { Usage } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Sparkline } from "../../components/sparkline.tsx";
import { Credits } from "../../components/text.tsx";
import { textOf, unitsOf } from "../../exact.ts";
import { linkTo } from "../../place.ts";
import { bucketsOf } from "../../time-ranges.ts";

/** What an account was charged, day by day. */
export function Spend({ account }: { readonly account: string }) {
  const { data } = useLoad(`spend of ${account}`, async (signal) => {
    const days = bucketsOf("30d", Date.now());
    const since = new Date(days[0] ?? 0).toISOString();
    const query = { by: "day", account, since };
    const usage = await get<{ readonly data: readonly Usage[] }>("/usage", { query, signal });
    const charged = new Map(usage.data.map(({ charged: sum, day = "" }) => [Date.parse(day), sum]));
    return days.map((day) => unitsOf(charged.get(day) ?? "0", 9));
  });
  if (data === null) return <span class="quiet">…</span>;
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
