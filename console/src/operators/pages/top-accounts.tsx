import { get } from "../../api/client.ts";
import type { Usage } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Loaded } from "../../components/state.tsx";
import { Credits } from "../../components/text.tsx";
import { unitsOf } from "../../exact.ts";
import { linkTo } from "../../place.ts";
import { bucketsOf, type RangeName } from "../../time-ranges.ts";

/** As many as are as tall as a plot. */
const rowsMax = 5;
/** It adds up every account. */
const everyMs = 300_000;

/** The accounts that were charged most over a time, among its plots. */
export function TopAccounts({ range }: { readonly range: RangeName }) {
  const load = useLoad(
    `top accounts ${range}`,
    async (signal) => {
      const query = { by: "account", since: sinceOf(range) };
      const usage = await get<{ readonly data: readonly Usage[] }>("/usage", { query, signal });
      return usage.data
        .map((row) => ({ ...row, nanos: unitsOf(row.charged, 9) }))
        .toSorted((one, other) => Number(other.nanos - one.nanos));
    },
    everyMs,
  );
  return (
    <section class="plot" aria-label="Who was charged most">
      <div class="plot-head">
        <h2 class="plot-title">Who was charged most</h2>
        <span class="plot-when quiet">credits</span>
        <a class="plot-keys" href={linkTo(["accounts"])}>
          All accounts
        </a>
      </div>
      <Loaded load={load} what="who was charged most">
        {(rows) => (
          <ol class="most">
            {rows.slice(0, rowsMax).map(({ account = "", account_name: name, charged, nanos }) => (
              <li key={account}>
                <a
                  title={name ?? account}
                  href={linkTo(["accounts", account], { tab: "usage", range })}
                >
                  {name ?? account}
                </a>
                <span class="most-bar" aria-hidden="true">
                  <span style={{ width: `${String(shareOf(nanos, rows[0]?.nanos ?? 0n))}%` }} />
                </span>
                <a href={linkTo(["receipts"], { account, ended_since: sinceOf(range) })}>
                  <Credits amount={charged} />
                </a>
              </li>
            ))}
          </ol>
        )}
      </Loaded>
    </section>
  );
}

/** When the first point of the plots beside it begins. */
function sinceOf(range: RangeName): string {
  return new Date(bucketsOf(range, Date.now())[0] ?? 0).toISOString();
}

function shareOf(nanos: bigint, most: bigint): number {
  return most === 0n ? 0 : (Number(nanos) / Number(most)) * 100;
}
