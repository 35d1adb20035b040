import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Usage } from "../api/types.ts";
import { Figure, Figures } from "../components/page.tsx";
import { Plot, type Series } from "../components/plot.tsx";
import { textOf, unitsOf } from "../exact.ts";
import { linkTo } from "../place.ts";
import { type RangeName, ranges } from "../time-ranges.ts";
import {
  countText,
  creditText,
  durationText,
  shortDuration,
  shortCount,
  timeText,
  dayText,
  zoneText,
} from "../words.ts";

/** When the hour or day begins that a row is of. */
function beginOf(row: Usage, by: "hour" | "day"): number {
  const named: Readonly<Record<string, unknown>> = row;
  const text = named[by] ?? named["group"];
  return typeof text === "string" ? Date.parse(text) : Number.NaN;
}

const latencies = [
  ["first_output_p50_ms", "first_output_p95_ms"],
  ["total_p50_ms", "total_p95_ms"],
] as const;
type Latency = (typeof latencies)[number][number];
type Counted = {
  [Name in keyof Usage]-?: Usage[Name] extends number ? Name : never;
}[keyof Usage];

/** Endings of requests as a plot tells them apart. */
const endings = [
  ["completed", 3, ["completed"]],
  ["cancelled", 2, ["cancelled", "cancelled_before_output", "cancelled_by_operator"]],
  ["refused", 4, ["refused"]],
  ["failed", 5, ["failed", "lease_lost"]],
] as const satisfies readonly (readonly [string, number, readonly Counted[]])[];

/** Plots of how many: their titles, and what is plotted. */
const counts = [
  ["Requests", "requests"],
  ["How they ended", "endings"],
  ["Tokens in", "input"],
  ["Tokens out", "output"],
] as const;

function chargedOf(rows: readonly Usage[]): bigint {
  return rows.reduce((total, row) => total + unitsOf(row.charged, 9), 0n);
}

/** The sums of all rows. */
function UsageFigures({
  charged,
  href,
  rows,
}: {
  readonly rows: readonly Usage[];
  readonly charged: string;
  /** The receipts that they are of. */
  readonly href: string;
}) {
  const sum = (of: (row: Usage) => bigint): bigint =>
    rows.reduce((total, row) => total + of(row), 0n);
  return (
    <Figures>
      <Figure name="Requests" href={href}>
        <span class="number">{countText(Number(sum((row) => BigInt(row.requests))))}</span>
      </Figure>
      <Figure name="Tokens in" href={href}>
        <span class="number">{countText(Number(sum((row) => BigInt(row.input_tokens))))}</span>
      </Figure>
      <Figure name="Tokens out" href={href}>
        <span class="number">{countText(Number(sum((row) => BigInt(row.output_tokens))))}</span>
      </Figure>
      <Figure name="Charged" note="credits" href={href}>
        <span class="number">{charged}</span>
      </Figure>
    </Figures>
  );
}

function greater(one: number | null, other: number | null): number | null {
  return one === null || (other !== null && other > one) ? other : one;
}

/** The first one, and those that are not 0 all along. */
function happened(series: readonly Series[]): readonly Series[] {
  return series.filter(({ values }, at) => at === 0 || values.some((value) => value !== 0));
}

/** What is plotted of rows: in each plot a value for each stretch. */
function plottedOf(rows: readonly Usage[], buckets: readonly number[], by: "hour" | "day") {
  const rowsOf = buckets.map((begin) => rows.filter((row) => beginOf(row, by) === begin));
  const column = (...names: readonly Counted[]): readonly number[] =>
    rowsOf.map((all) =>
      all.reduce((total, row) => names.reduce((part, name) => part + row[name], total), 0),
    );
  // A stretch has one row, unless what is shown is of several accounts: the slowest of them then.
  const latency = (name: Latency): readonly (number | null)[] =>
    rowsOf.map((all) => all.reduce<number | null>((most, row) => greater(most, row[name]), null));
  const charged = rowsOf.map((all) => chargedOf(all));
  return {
    credit: [
      {
        name: "charged",
        tone: 2,
        values: charged.map((nanos) => Number(nanos) / 1e9),
        texts: charged.map((nanos) => creditText(textOf(nanos, 9))),
      },
    ],
    requests: [{ name: "ended", tone: 1, values: column("requests") }],
    endings: happened(
      endings.map(([name, tone, members]) => ({ name, tone, values: column(...members) })),
    ),
    input: happened([
      { name: "input", tone: 1, values: column("input_tokens") },
      { name: "of it cached", tone: 3, values: column("cached_input_tokens") },
    ]),
    output: [{ name: "output", tone: 4, values: column("output_tokens") }],
    latencies: latencies.map(([median, slow]) => [
      { name: "p50", tone: 1, values: latency(median) },
      { name: "p95", tone: 2, values: latency(slow) },
    ]),
  } as const satisfies Readonly<Record<string, readonly (Series | readonly Series[])[]>>;
}

/** What was used over a time: the sums, and a plot of each. */
export function UsagePlots({
  buckets,
  children,
  empty,
  filters,
  range,
  rows,
}: {
  readonly buckets: readonly number[];
  readonly rows: readonly Usage[];
  readonly range: RangeName;
  /** What the rows are of, such as an account: the receipts behind a point are of it too. */
  readonly filters: Readonly<Record<string, string>>;
  /** What stands beside the plot of credit. */
  readonly children?: ComponentChildren;
  /** What stands where nothing was used. */
  readonly empty: ComponentChildren;
}) {
  const { by, widthMs } = ranges[range];
  // The page is drawn anew whenever something happens; what is plotted is so when it is asked for anew.
  const plotted = useMemo(() => plottedOf(rows, buckets, by), [rows, buckets, by]);
  if (rows.length === 0) return <>{empty}</>;
  const charged = creditText(textOf(chargedOf(rows), 9));
  const receiptsOf = (sinceMs: number, untilMs: number): string =>
    linkTo(["receipts"], {
      ...filters,
      ended_since: new Date(sinceMs).toISOString(),
      ended_until: new Date(untilMs).toISOString(),
    });
  const whole = receiptsOf(buckets[0] ?? 0, (buckets.at(-1) ?? 0) + widthMs);
  const shared = {
    times: buckets,
    widthMs,
    whenText: (ms: number) =>
      by === "day" ? dayText(ms) : timeText(new Date(ms).toISOString()).slice(0, 16),
    linkOf: (ms: number) => receiptsOf(ms, ms + widthMs),
  };
  return (
    <>
      <UsageFigures rows={rows} charged={charged} href={whole} />
      <div class="plots">
        <Plot
          {...shared}
          title="Credits"
          format={shortCount}
          whole={[charged]}
          series={plotted.credit}
        />
        {children}
        {counts.map(([title, name]) => (
          <Plot
            key={name}
            {...shared}
            title={title}
            format={shortCount}
            exact={countText}
            series={plotted[name]}
          />
        ))}
        {plotted.latencies.map((series, at) => (
          <Plot
            key={at}
            {...shared}
            title={at === 0 ? "Time to first output" : "Time to the end"}
            format={shortDuration}
            exact={durationText}
            whole={["", ""]}
            series={series}
          />
        ))}
      </div>
      <p class="hint">
        A request counts when it ended.{" "}
        {by === "day" ? "Days are of UTC" : `Hours are of ${zoneText()}`}; latencies are right to a
        factor of two. A click on a point or a sum leads to its receipts.
      </p>
    </>
  );
}
