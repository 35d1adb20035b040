import { useMemo } from "preact/hooks";
import type { Entry } from "../api/types.ts";
import { creditText, timeText } from "../words.ts";
import { Plot } from "./plot.tsx";

/** The balance after each movement. */
export function BalancePlot({ entries }: { readonly entries: readonly Entry[] }) {
  const { series, times } = useMemo(() => plotOf(entries), [entries]);
  return (
    <div class="plots plots-above">
      <Plot
        title="Balance"
        level
        times={times}
        series={series}
        format={balanceText}
        whenText={(ms) => timeText(new Date(ms).toISOString())}
        widthMs={0}
      />
    </div>
  );
}

function plotOf(newestFirst: readonly Entry[]) {
  const entries = newestFirst.toReversed();
  const balances = {
    values: entries.map(({ balance }) => Number(balance)),
    texts: entries.map(({ balance }) => creditText(balance)),
  };
  return {
    times: entries.map(({ at }) => Date.parse(at)),
    series: [{ name: "balance", tone: 1, ...balances }] as const,
  };
}

/** Exact enough that two steps of the scale never look the same. */
function balanceText(balance: number): string {
  return creditText(String(Number(balance.toPrecision(15))));
}
