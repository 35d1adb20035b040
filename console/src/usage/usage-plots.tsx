import type { ComponentChildren } from "preact";
import type { Usage } from "../api/types.ts";
import { Figure, Figures } from "../components/page.tsx";
import { Plot } from "../components/plot.tsx";
import { textOf, unitsOf } from "../exact.ts";
import { linkTo } from "../place.ts";
import { type RangeName, ranges } from "../time-ranges.ts";
import { countText, creditText, shortCount, timeText } from "../words.ts";

/** When the hour or day begins that a row is of. */
function beginOf(row: Usage, by: "hour" | "day"): number {
  const named: Readonly<Record<string, unknown>> = row;
  const text = named[by] ?? named["group"];
  return typeof text === "string" ? Date.parse(text) : Number.NaN;
}

const counted = ["requests", "input_tokens", "cached_input_tokens", "output_tokens"] as const;

/** What was used over a time: the sums, and a plot of each. */
export function UsagePlots({
  buckets,
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
  /** What stands where nothing was used. */
  readonly empty: ComponentChildren;
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
  if (rows.length === 0) return <>{empty}</>;
  const shared = {
    times: buckets,
    widthMs,
    whenText: (ms: number) =>
      timeText(new Date(ms).toISOString()).slice(0, widthMs < 86_400_000 ? 16 : 10),
    linkOf: (ms: number) =>
      linkTo(["receipts"], {
        ...filters,
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
