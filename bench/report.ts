import { median } from "./load.ts";
import { markdown } from "./markdown.ts";

/** Of one arm every figure, by scenario, format and name, with a value a round. */
export type ArmFigures = Map<string, number[]>;

/** One column of a table. */
interface Column {
  readonly head: string;
  readonly digits: number;
  /** Names of figures; more than one are shown as `a / b`. */
  readonly figures: readonly string[];
  /** Less what the direct connection has in the same round. */
  readonly added?: boolean;
  /** Beside the figure, how many times that of the floor it is. */
  readonly toFloor?: boolean;
}

interface Table {
  readonly title: string;
  readonly columns: readonly Column[];
}

const requestColumns = (format: string): readonly Column[] => [
  {
    head: "added TTFT p50 / p99 ms, 4 clients",
    digits: 2,
    figures: [`ttft.${format}.p50`, `ttft.${format}.p99`],
    added: true,
  },
  {
    head: "CPU ms a request, 4 clients",
    digits: 3,
    figures: [`ttft.${format}.cpu`],
    toFloor: true,
  },
  { head: "database's, 4 clients", digits: 3, figures: [`ttft.${format}.database`] },
  {
    head: "CPU ms a request, 64 clients",
    digits: 3,
    figures: [`capacity.${format}.cpu`],
    toFloor: true,
  },
  { head: "database's, 64 clients", digits: 3, figures: [`capacity.${format}.database`] },
  { head: "requests/s", digits: 0, figures: [`capacity.${format}.rate`] },
];

const pacedColumns = (format: string): readonly Column[] => [
  {
    head: "CPU s per 1M chunks, paced",
    digits: 1,
    figures: [`paced.${format}.cpu`],
    toFloor: true,
  },
  {
    head: "added chunk p50 / p99 ms",
    digits: 2,
    figures: [`paced.${format}.p50`, `paced.${format}.p99`],
    added: true,
  },
];

const tables: readonly Table[] = [
  { title: "Requests, chat", columns: requestColumns("chat") },
  {
    title: "Chunks, chat",
    columns: [
      ...pacedColumns("chat"),
      ...[1, 4, 16].map((size) => ({
        head: `burst, ${String(size)} KiB`,
        digits: 2,
        figures: [`burst-${String(size)}.chat.cpu`],
        toFloor: true,
      })),
    ],
  },
  ...["messages", "responses"].flatMap((format) => [
    { title: `Requests, ${format}`, columns: requestColumns(format) },
    { title: `Chunks, ${format}`, columns: pacedColumns(format) },
  ]),
  {
    title: "Memory, and bodies of 4 MiB",
    columns: [
      { head: "RSS MiB after load", digits: 0, figures: ["rss"] },
      { head: "cold start ms", digits: 0, figures: ["coldStart"] },
      {
        head: "slowest chunk ms, without / with bodies of 4 MiB",
        digits: 1,
        figures: ["bodies.chat.without", "bodies.chat.beside"],
      },
    ],
  },
];

/** Every table that has something to show, as Markdown: medians over the rounds, ranges in brackets. */
export function printTables(arms: ReadonlyMap<string, ArmFigures>): string {
  return tables.map((table) => printTable(table, arms)).join("");
}

function printTable(table: Table, arms: ReadonlyMap<string, ArmFigures>): string {
  const rows = [...arms]
    .map(([name, figures]) => ({
      name,
      cells: table.columns.map((column) => cell(column, { name, figures, arms })),
      errors: errorsOf(table, figures),
    }))
    .filter(({ cells }) => cells.some((text) => text !== ""));
  if (rows.length === 0) return "";
  const shown = table.columns
    .map(({ head }, at) => ({ head, at }))
    .filter(({ at }) => rows.some(({ cells }) => cells[at] !== ""));
  const lines = rows.map(({ cells, errors, name }) => ({
    arm: errors === 0 ? name : `${name}, **${String(errors)} errors**`,
    ...Object.fromEntries(shown.map(({ at, head }) => [head, cells[at] ?? ""])),
  }));
  return `\n${table.title}\n\n${markdown(lines)}`;
}

interface Shown {
  readonly name: string;
  readonly figures: ArmFigures;
  readonly arms: ReadonlyMap<string, ArmFigures>;
}

function cell(column: Column, { arms, figures, name }: Shown): string {
  const direct = name === "direct";
  const parts = column.figures.map((figure) => {
    const values = figures.get(figure);
    if (values === undefined || (direct && column.added !== true)) return null;
    const base = column.added === true && !direct ? directValues(arms.get("direct"), figure) : [];
    return spread(
      values.map((value, round) => value - (base[round] ?? 0)),
      column.digits,
    );
  });
  if (parts.every((part) => part === null || part === "0")) return "";
  const text = parts.join(" / ");
  const figure = column.figures[0] ?? "";
  const ratios = column.toFloor === true ? ratiosTo(arms.get("floor"), figures, figure) : [];
  const ratio = ratios.length === 0 || name === "floor" ? "" : `, ${median(ratios).toFixed(2)} x`;
  return direct ? `(${text})` : text + ratio;
}

/** Directly there is chat alone. */
function directValues(direct: ArmFigures | undefined, figure: string): readonly number[] {
  return direct?.get(figure.replace(/\.\w+\./, ".chat.")) ?? [];
}

/** How many times the figure of `base` it is, round by round. */
export function ratiosTo(
  base: ArmFigures | undefined,
  figures: ArmFigures,
  figure: string,
): readonly number[] {
  const below = base?.get(figure) ?? [];
  return (figures.get(figure) ?? []).flatMap((value, round) => {
    const under = below[round];
    return under === undefined || under === 0 ? [] : [value / under];
  });
}

/** The median, and the range where there is one. */
export function spread(values: readonly number[], digits: number): string {
  if (values.every((value) => value === 0)) return "0";
  const middle = median(values).toFixed(digits);
  if (values.length === 1) return middle;
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return `${middle} (${least.toFixed(digits)} to ${most.toFixed(digits)})`;
}

function errorsOf(table: Table, figures: ArmFigures): number {
  const names = new Set(
    table.columns.flatMap((column) =>
      column.figures.map((figure) => `${figure.split(".").slice(0, 2).join(".")}.errors`),
    ),
  );
  return [...names]
    .flatMap((name) => figures.get(name) ?? [])
    .reduce((sum, errors) => sum + errors, 0);
}

/** Each figure of an arm against that of its like whose name has the prefix, round by round. */
export function printComparison(
  arms: ReadonlyMap<string, ArmFigures>,
  prefix: string,
  title: string,
): string {
  const lines = [...arms].flatMap(([name, figures]) => {
    const base = arms.get(prefix + name);
    if (base === undefined) return [];
    return [...figures.keys()].flatMap((figure) => {
      const ratios = ratiosTo(base, figures, figure);
      if (ratios.length === 0) return [];
      const digits = 3;
      return {
        arm: name,
        figure,
        before: spread(base.get(figure) ?? [], digits),
        now: spread(figures.get(figure) ?? [], digits),
        "now / before": spread(ratios, 2),
      };
    });
  });
  return lines.length === 0 ? "" : `\n${title}\n\n${markdown(lines)}`;
}
