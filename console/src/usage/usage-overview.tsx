import type { ComponentChildren } from "preact";
import { useAsk } from "../api/ask.ts";
import type { Usage } from "../api/types.ts";
import { useLoad } from "../api/use-load.ts";
import { Tabs } from "../components/page.tsx";
import { Loaded } from "../components/state.tsx";
import { linkTo } from "../place.ts";
import { bucketsOf, isRange, type RangeName, ranges } from "../time-ranges.ts";
import { UsagePlots } from "./usage-plots.tsx";

const everyMs = 30_000;
const noFilters = {};

/** What was used over the time that the address names, as plots; the other times are a click away. */
export function UsageOverview({
  beside,
  empty,
  filters = noFilters,
  path,
  place,
  query,
}: {
  /** Where the usage is asked for. */
  readonly path: "/usage" | "/account/usage";
  /** Whose usage; absent: of all that may be seen. */
  readonly filters?: Readonly<Record<string, string>>;
  /** Where the page is, and what else its address says. */
  readonly place: {
    readonly path: readonly string[];
    readonly query?: Readonly<Record<string, string>>;
  };
  readonly query: URLSearchParams;
  /** What stands among the plots, beside that of credit. */
  readonly beside?: (range: RangeName) => ComponentChildren;
  readonly empty: ComponentChildren;
}) {
  const asked = query.get("range") ?? "";
  const range = isRange(asked) ? asked : "24h";
  const load = useUsage(path, range, filters);
  return (
    <>
      <Tabs
        label="Time"
        current={range}
        tabs={Object.entries(ranges).map(([name, { title }]) => [
          name,
          title,
          linkTo(place.path, { ...place.query, range: name === "24h" ? null : name }),
        ])}
      />
      <Loaded load={load} what="the usage">
        {(usage) => (
          <UsagePlots {...usage} range={range} filters={filters} empty={empty}>
            {beside?.(range)}
          </UsagePlots>
        )}
      </Loaded>
    </>
  );
}

function useUsage(path: string, range: RangeName, filters: Readonly<Record<string, string>>) {
  const ask = useAsk();
  return useLoad(
    `${path} ${range} ${JSON.stringify(filters)}`,
    async (signal) => {
      const buckets = bucketsOf(range, Date.now());
      const since = new Date(buckets[0] ?? 0).toISOString();
      const query = { ...filters, by: ranges[range].by, since };
      const { data } = await ask<{ readonly data: readonly Usage[] }>(path, { query, signal });
      return { buckets, rows: data };
    },
    everyMs,
  );
}
