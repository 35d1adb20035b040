import { get } from "../../api/client.ts";
import type { Page, Refusal, Status, Usage } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Figure, Figures, PageHead, Section, Tabs } from "../../components/page.tsx";
import { Plot } from "../../components/plot.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { textOf, unitsOf } from "../../exact.ts";
import { Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { bucketsOf, isRange, type RangeName, ranges } from "../../time-ranges.ts";
import { countText, creditText, shortCount, timeText } from "../../words.ts";

const everyMs = 30_000;
const nowEveryMs = 5_000;

/** What runs, and what was used over a time. */
export function OverviewPage({ query }: { readonly query: URLSearchParams }) {
  const asked = query.get("range") ?? "";
  const range = isRange(asked) ? asked : "24h";
  return (
    <>
      <PageHead title="Overview" />
      <RunningNow />
      <Tabs
        label="Time"
        current={range}
        tabs={Object.entries(ranges).map(([name, { title }]) => [
          name,
          title,
          linkTo([], { range: name === "24h" ? null : name }),
        ])}
      />
      <UsageOverview range={range} />
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

function UsageOverview({ range }: { readonly range: RangeName }) {
  const { by } = ranges[range];
  const load = useLoad(
    `usage ${range}`,
    async (signal) => {
      const buckets = bucketsOf(range, Date.now());
      const since = new Date(buckets[0] ?? 0).toISOString();
      const query = { by, since };
      const { data } = await get<{ readonly data: readonly Usage[] }>("/usage", { query, signal });
      return { buckets, rows: data };
    },
    everyMs,
  );
  return (
    <Loaded load={load} what="the usage">
      {({ buckets, rows }) => <UsagePlots buckets={buckets} rows={rows} range={range} />}
    </Loaded>
  );
}

/** When the hour or day begins that a row is of. */
function beginOf(row: Usage, by: "hour" | "day"): number {
  const named: Readonly<Record<string, unknown>> = row;
  const text = named[by] ?? named["group"];
  return typeof text === "string" ? Date.parse(text) : Number.NaN;
}

const counted = ["requests", "input_tokens", "cached_input_tokens", "output_tokens"] as const;

function UsagePlots({
  buckets,
  range,
  rows,
}: {
  readonly buckets: readonly number[];
  readonly rows: readonly Usage[];
  readonly range: RangeName;
}) {
  const { by, widthMs } = ranges[range];
  const sum = (of: (row: Usage) => bigint): bigint =>
    rows.reduce((total, row) => total + of(row), 0n);
  const column = (name: (typeof counted)[number]): readonly number[] => {
    const values = buckets.map(() => 0);
    for (const row of rows) {
      const at = buckets.indexOf(beginOf(row, by));
      if (at >= 0) values[at] = (values[at] ?? 0) + row[name];
    }
    return values;
  };
  const charged = buckets.map((begin) =>
    rows
      .filter((row) => beginOf(row, by) === begin)
      .reduce((total, row) => total + unitsOf(row.charged, 9), 0n),
  );
  if (rows.length === 0)
    return (
      <Empty title="No request ended in this time">
        <p>
          Make an <a href={linkTo(["accounts"])}>account</a> and a key, and send the first request.
        </p>
      </Empty>
    );
  const shared = {
    times: buckets,
    widthMs,
    whenText: (ms: number) =>
      timeText(new Date(ms).toISOString()).slice(0, widthMs < 86_400_000 ? 16 : 10),
    linkOf: (ms: number) =>
      linkTo(["receipts"], {
        since: new Date(ms).toISOString(),
        until: new Date(ms + widthMs).toISOString(),
      }),
  };
  return (
    <>
      <Figures>
        <Figure name="Requests">
          <span class="number">{countText(Number(sum((row) => BigInt(row.requests))))}</span>
        </Figure>
        <Figure name="Tokens in">
          <span class="number">{countText(Number(sum((row) => BigInt(row.input_tokens))))}</span>
        </Figure>
        <Figure name="Tokens out">
          <span class="number">{countText(Number(sum((row) => BigInt(row.output_tokens))))}</span>
        </Figure>
        <Figure name="Charged" note="credits">
          <span class="number">
            {creditText(
              textOf(
                sum((row) => unitsOf(row.charged, 9)),
                9,
              ),
            )}
          </span>
        </Figure>
      </Figures>
      <div class="plots">
        <Plot
          {...shared}
          title="Requests"
          format={shortCount}
          series={[{ name: "ended", tone: 1, values: column("requests") }]}
        />
        <Plot
          {...shared}
          title="Credit"
          format={(value) => shortCount(value)}
          series={[
            { name: "charged", tone: 2, values: charged.map((nanos) => Number(nanos) / 1e9) },
          ]}
        />
        <Plot
          {...shared}
          title="Tokens in"
          format={shortCount}
          series={[
            { name: "input", tone: 1, values: column("input_tokens") },
            { name: "of it cached", tone: 3, values: column("cached_input_tokens") },
          ]}
        />
        <Plot
          {...shared}
          title="Tokens out"
          format={shortCount}
          series={[{ name: "output", tone: 4, values: column("output_tokens") }]}
        />
      </div>
      <p class="hint">A request counts when it ended. Times are UTC days and hours.</p>
    </>
  );
}
