import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { useAsk } from "../api/ask.ts";
import type { Statement } from "../api/types.ts";
import { useLoad } from "../api/use-load.ts";
import { Choice } from "../components/field.tsx";
import { Figure, Figures, Section } from "../components/page.tsx";
import { Plot } from "../components/plot.tsx";
import { Empty, Loaded } from "../components/state.tsx";
import { amountColumn, type Column, Table } from "../components/table.tsx";
import { Credits, Id, Time } from "../components/text.tsx";
import { linkTo } from "../place.ts";
import { goTo } from "../router.ts";
import { countText, creditText, dayText, shortCount } from "../words.ts";

const dayMs = 86_400_000;
const monthsMax = 24;

/** The months of UTC from a time up to now, the present one first; null: a year of them. */
function monthsSince(time: string | null): readonly string[] {
  const first = time?.slice(0, 7) ?? "";
  const now = new Date();
  return Array.from({ length: time === null ? 12 : monthsMax }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7),
  ).filter((month) => month >= first);
}

/** What moved the balance of an account in the month that the address names: sums, days, credits. */
export function StatementView({
  downloads,
  filters,
  path,
  place,
  query,
  since,
}: {
  /** Where statements are asked for, up to the month. */
  readonly path: string;
  /** When the account was made; null: not known. */
  readonly since: string | null;
  /** Where the page is. */
  readonly place: {
    readonly path: readonly string[];
    readonly query?: Readonly<Record<string, string>>;
  };
  /** Whose receipts are behind a day. */
  readonly filters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** How the statement of a month is had as a file. */
  readonly downloads: (month: string) => ComponentChildren;
}) {
  const ask = useAsk();
  const months = monthsSince(since);
  const month = query.get("month") ?? months[0] ?? "";
  const load = useLoad(`${path} ${month}`, (signal) =>
    ask<Statement>(`${path}/${encodeURIComponent(month)}`, { signal }),
  );
  return (
    <>
      <div class="filters-line">
        <Choice
          label="Month"
          value={month}
          choices={months.map((name) => [name, name] as const)}
          onChange={(next) => goTo(linkTo(place.path, { ...place.query, month: next }))}
        />
        <div class="actions">{downloads(month)}</div>
      </div>
      <Loaded load={load} what={`the statement of ${month}`}>
        {(statement) => <Parts statement={statement} filters={filters} />}
      </Loaded>
    </>
  );
}

const sums = [
  ["Opening balance", "opening_balance"],
  ["Top-ups", "top_ups"],
  ["Grants", "grants"],
  ["Refunds", "refunds"],
  ["Corrections", "corrections"],
  ["Charged", "charged"],
  ["Closing balance", "closing_balance"],
] as const satisfies readonly (readonly [string, keyof Statement])[];

function Parts({
  filters,
  statement,
}: {
  readonly statement: Statement;
  readonly filters: Readonly<Record<string, string>>;
}) {
  const { credits, credits_total: total, days, head } = statement;
  return (
    <>
      <Figures>
        {sums.map(([title, name]) => (
          <Figure key={name} name={title}>
            <Credits amount={statement[name]} />
          </Figure>
        ))}
      </Figures>
      <p class="hint">
        Amounts are credits; month and days are of UTC. A request counts when it ended.
      </p>
      <Days days={days} charged={statement.charged} filters={filters} />
      <Section
        title="Credit"
        hint={
          total > credits.length &&
          `The first ${countText(credits.length)} of ${countText(total)} are listed; the sums have all.`
        }
      >
        {credits.length === 0 ? (
          <p class="quiet">None was added or taken back in this month.</p>
        ) : (
          <Table
            caption="Credit of the month"
            columns={creditColumns}
            rows={credits}
            idOf={({ sequence }) => String(sequence)}
          />
        )}
      </Section>
      {head !== null && (
        <Section
          title="Proof"
          hint="The head of the account's chain of entries: kept elsewhere, it proves later that no entry up to the month's end was changed."
        >
          <Id>{head}</Id>
        </Section>
      )}
    </>
  );
}

const creditColumns: readonly Column<Statement["credits"][number]>[] = [
  { head: "Time", cell: ({ at }) => <Time at={at} /> },
  { head: "Kind", names: true, cell: ({ kind }) => kind },
  amountColumn("Amount", ({ amount }) => amount),
  {
    head: "For",
    cell: ({ note, receipt, reference }) => (
      <>
        {receipt !== null && (
          <a href={linkTo(["receipts", receipt])}>
            <code>{receipt}</code>
          </a>
        )}{" "}
        {reference !== null && <code class="quiet">{reference}</code>} {note}
      </>
    ),
  },
];

/** What each day of the month cost; a click leads to its receipts. */
function Days({
  charged,
  days,
  filters,
}: Pick<Statement, "charged" | "days"> & {
  readonly filters: Readonly<Record<string, string>>;
}) {
  const { series, times } = useMemo(() => {
    const all = everyDay(days);
    const points = { values: all.map((day) => Number(day.charged)), texts: all.map(chargedOf) };
    return {
      times: all.map(({ day }) => Date.parse(day)),
      series: [{ name: "charged", tone: 2, ...points }] as const,
    };
  }, [days]);
  if (days.every(({ requests }) => requests === 0))
    return <Empty title="No request ended in this month" />;
  return (
    <div class="plots">
      <Plot
        title="Credits charged by day"
        times={times}
        series={series}
        format={shortCount}
        whole={[creditText(charged)]}
        widthMs={dayMs}
        whenText={dayText}
        linkOf={(ms) =>
          linkTo(["receipts"], {
            ...filters,
            ended_since: new Date(ms).toISOString(),
            ended_until: new Date(ms + dayMs).toISOString(),
          })
        }
      />
    </div>
  );
}

/** From the first day to the last; a day without a request is not in the statement, and would be drawn as the one before it. */
function everyDay(days: Statement["days"]): Statement["days"] {
  const [first, last] = [days[0], days.at(-1)].map((one) => Date.parse(one?.day ?? ""));
  const there = new Map(days.map((one) => [one.day, one]));
  const count = first === undefined || last === undefined ? 0 : (last - first) / dayMs + 1;
  return Array.from({ length: Number.isNaN(count) ? 0 : count }, (_, at) => {
    const day = new Date((first ?? 0) + at * dayMs).toISOString().slice(0, 10);
    return there.get(day) ?? { day, requests: 0, charged: "0" };
  });
}

function chargedOf({ charged, requests }: Statement["days"][number]): string {
  return `${charged} for ${countText(requests)} request${requests === 1 ? "" : "s"}`;
}
