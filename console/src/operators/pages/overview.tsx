import { get } from "../../api/client.ts";
import type { Page, Refusal, Status } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Figure, Figures, PageHead, Section } from "../../components/page.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { UsageOverview } from "../../usage/usage-overview.tsx";
import { countText } from "../../words.ts";

const nowEveryMs = 5_000;

/** What runs, and what was used over a time. */
export function OverviewPage({ query }: { readonly query: URLSearchParams }) {
  return (
    <>
      <PageHead title="Overview" />
      <RunningNow />
      <UsageOverview
        path="/usage"
        place={{ path: [] }}
        query={query}
        empty={
          <Empty title="No request ended in this time">
            <p>
              Make an <a href={linkTo(["accounts"])}>account</a> and a key, and send the first
              request.
            </p>
          </Empty>
        }
      />
    </>
  );
}

/** Refusals that are looked at for the figure; the page of what runs has them all. */
const refusalsMax = 500;

function RunningNow() {
  const load = useLoad(
    "now",
    async (signal) => {
      const [status, refusals] = await Promise.all([
        get<Status>("/status", { signal }),
        get<Page<Refusal> & { readonly since: string }>("/refusals", {
          query: { limit: refusalsMax },
          signal,
        }),
      ]);
      return { status, refusals };
    },
    nowEveryMs,
  );
  return (
    <Section title="Now">
      <Loaded load={load} what="what runs">
        {({ refusals, status: { replicas } }) => (
          <Figures>
            <Figure name="Running requests" href={linkTo(["running"])}>
              <span class="number">
                {countText(replicas.reduce((sum, { running }) => sum + running, 0))}
              </span>
            </Figure>
            <Figure
              name="Replicas"
              href={linkTo(["settings"])}
              note={
                replicas.every(({ ready }) => ready)
                  ? "ready"
                  : replicas.flatMap(({ reasons }) => Object.values(reasons)).join("; ")
              }
            >
              <span class="number">{countText(replicas.length)}</span>
            </Figure>
            <Figure
              name="Refused or failed"
              href={linkTo(["running"])}
              note={
                <>
                  {codesText(refusals.data)} since <Time at={refusals.since} />
                </>
              }
            >
              <span class="number">
                {countText(refusals.data.length)}
                {refusals.next_cursor === null ? "" : " or more"}
              </span>
            </Figure>
          </Figures>
        )}
      </Loaded>
    </Section>
  );
}

/** The codes with how often each came, the most frequent first. */
function codesText(refusals: readonly Refusal[]): string {
  const counts = new Map<string, number>();
  for (const { code } of refusals) counts.set(code, (counts.get(code) ?? 0) + 1);
  return [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, 3)
    .map(([code, count]) => `${code} ${String(count)}`)
    .join(", ");
}
