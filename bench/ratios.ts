import { median } from "./load.ts";
import { markdown } from "./markdown.ts";
import { type ArmFigures, ratiosTo, spread } from "./report.ts";

// How many times the CPU of the floor of Node the service takes, with its ledger in SQLite: what docs/performance.md
// says, and what CI holds it to. Times move with the machine, and so do these, but less: both arms are Node and have
// the same core in the same minute.

/** By scenario, format and figure. */
export const documentedRatios: Readonly<
  Record<string, { readonly row: string; readonly times: number }>
> = {
  "capacity.chat.cpu": { row: "a request, 64 clients", times: 8 },
  "paced.chat.cpu": { row: "a paced chunk", times: 1.6 },
  "burst-4.chat.cpu": { row: "a burst chunk", times: 2.6 },
};

/** By half: less may be the machine, as medians moved by up to a third beside a load of 35. */
export const worseBy = 1.5;

/** A median that is worse after the first rounds is measured further before it counts. */
export const roundsOfCheck: readonly number[] = [5, 4, 6];

/** Each documented ratio that is worse by half, in words: by the median over the rounds, and by the least of each arm. */
export function worseRatios(arms: ReadonlyMap<string, ArmFigures>): readonly string[] {
  const [floor, service] = [arms.get("floor"), arms.get("sqlite") ?? new Map<string, number[]>()];
  return Object.entries(documentedRatios).flatMap(([figure, { row, times }]) => {
    const ratios = ratiosTo(floor, service, figure);
    if (ratios.length === 0) return [`CPU of ${row}: not measured`];
    // What else the machine does only adds, at times to one arm more than to the other: a loss of ours is in both.
    const least =
      Math.min(...(service.get(figure) ?? [])) / Math.min(...(floor?.get(figure) ?? []));
    const measured = Math.min(median(ratios), least);
    if (measured <= times * worseBy) return [];
    return [
      `CPU of ${row}: ${measured.toFixed(2)} times the floor of Node, documented are ${String(times)}; find what costs, or document it in bench/ratios.ts and docs/performance.md`,
    ];
  });
}

/** What was measured beside what is documented. */
export function printRatios(arms: ReadonlyMap<string, ArmFigures>): string {
  const table = Object.entries(documentedRatios).map(([figure, { row, times }]) => ({
    CPU: row,
    "times the floor of Node": String(times),
    measured: spread(ratiosTo(arms.get("floor"), arms.get("sqlite") ?? new Map(), figure), 2),
  }));
  return `\n${markdown(table)}`;
}

/** Every arm with answers that were not whole. */
export function errorsIn(arms: ReadonlyMap<string, ArmFigures>): readonly string[] {
  return [...arms].flatMap(([name, figures]) => {
    const all = [...figures].filter(([figure]) => figure.endsWith("errors"));
    const count = all.flatMap(([, values]) => values).reduce((sum, errors) => sum + errors, 0);
    return count === 0 ? [] : [`${name}: ${String(count)} answers were not whole`];
  });
}
