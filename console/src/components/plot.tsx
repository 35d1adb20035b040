import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import { dayText, timeText } from "../words.ts";

/** One line or area of a plot. */
export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** What each point says exactly, where `format` shortens it. */
  readonly texts?: readonly string[];
  /** Which of the plot's colours. */
  readonly tone: 1 | 2 | 3 | 4 | 5;
}

/**
 * Values over time, with the exact ones at the pointer, and as a table for those who do not see it. A click leads to what
 * is behind a point.
 */
export function Plot({
  exact,
  format,
  height = 150,
  level = false,
  linkOf,
  series,
  times,
  title,
  whole = null,
  widthMs,
  whenText,
}: {
  readonly title: string;
  /** Milliseconds since 1970, the begin of each point. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** How the table and the pointer say a value, where `format` shortens it. */
  readonly exact?: (value: number) => string;
  /** What is said while no point is looked at, where values neither add up nor end in the present one; null: they do. */
  readonly whole?: readonly string[] | null;
  /** What a point is called: when it begins. */
  readonly whenText: (ms: number) => string;
  /** How long a point is. */
  readonly widthMs: number;
  readonly height?: number;
  /** Whether points are levels, such as a balance, of which the last is the present one; else they add up. */
  readonly level?: boolean;
  /** What a click on a point leads to. */
  readonly linkOf?: (ms: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const chosen = useRef<number | null>(null);
  const stretchMs = level ? 0 : widthMs;
  const summed = whole === null || whole.some((text) => text !== "");
  // An area stands for a sum.
  const filled = summed && !level;
  const data = useMemo(() => dataOf(times, series, stretchMs), [times, series, stretchMs]);
  const drawn = useRef<UPlot | null>(null);
  const isEmpty = times.length === 0;
  const lines = series.map(({ name, tone }) => `${name} ${String(tone)}`).join();
  useEffect(() => {
    const element = place.current;
    if (element === null || isEmpty) return;
    const choose = (found: number | null): void => {
      const index = found === null || stretchMs === 0 ? found : Math.floor(found / 2);
      chosen.current = index;
      setAt(index);
    };
    const draw = (shown: UPlot.AlignedData, pointer: Pointer): UPlot => {
      const given = { series, height, format, level, filled, widthMs, pointer, choose };
      return (drawn.current = new UPlot(optionsOf(element, given), shown, element));
    };
    let plot = draw(data, outside);
    const again = (): void => {
      const { cursor, data: shown } = plot;
      plot.destroy();
      plot = draw(shown, { left: cursor.left ?? outside.left, top: cursor.top ?? outside.top });
    };
    const watch = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    watch.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", again);
    addEventListener("theme", again);
    return () => {
      watch.disconnect();
      dark.removeEventListener("change", again);
      removeEventListener("theme", again);
      plot.destroy();
      drawn.current = null;
    };
  }, [isEmpty, lines, height, level, filled, widthMs]);
  // The same plot has newer values: a point that is looked at stays so, as the pointer has not moved.
  useEffect(() => {
    if (drawn.current !== null && drawn.current.data !== data) drawn.current.setData(data);
  }, [data]);
  const follow = (): void => {
    const ms = chosen.current === null ? undefined : times[chosen.current];
    if (ms !== undefined && linkOf !== undefined) location.hash = linkOf(ms).slice(1);
  };
  const said = ({ texts, values }: Series, index: number): string =>
    texts?.[index] ?? sayValue(values[index], exact ?? format);
  const allText = level ? "last" : summed ? "in all" : "";
  const begin = (ms: number): ComponentChildren =>
    linkOf === undefined ? whenText(ms) : <a href={linkOf(ms)}>{whenText(ms)}</a>;
  const inAll = (one: Series): string =>
    whole?.[series.indexOf(one)] ??
    (level
      ? said(one, times.length - 1)
      : (exact ?? format)(one.values.reduce<number>((sum, value) => sum + (value ?? 0), 0)));
  return (
    <figure class="plot">
      <figcaption>
        <span class="plot-title">{title}</span>
        <span class="plot-when quiet">{at === null ? allText : whenText(times[at] ?? 0)}</span>
        <ul class="plot-keys">
          {series.map((one) => (
            <li key={one.name}>
              <span class={`plot-key plot-key-${String(one.tone)}`} /> {one.name}{" "}
              <b class="number">{at === null ? inAll(one) : said(one, at)}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div
        ref={place}
        class={linkOf === undefined ? "plot-area" : "plot-area plot-link"}
        style={{ height: `${String(height)}px` }}
        aria-hidden="true"
        onClick={follow}
      />
      <PlotTable times={times} series={series} title={title} said={said} begin={begin} />
    </figure>
  );
}

/** The same for those who do not see it, and to copy. */
function PlotTable({
  begin,
  said,
  series,
  times,
  title,
}: {
  readonly title: string;
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly said: (one: Series, index: number) => string;
  readonly begin: (ms: number) => ComponentChildren;
}) {
  return (
    <details class="plot-table">
      <summary>As a table</summary>
      <div class="table" role="region" aria-label={`${title}, as a table`} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Begin</th>
              {series.map(({ name }) => (
                <th key={name} scope="col" class="right">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((ms, index) => (
              <tr key={index}>
                <th scope="row">{begin(ms)}</th>
                {series.map((one) => (
                  <td key={one.name} class="right number">
                    {said(one, index)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** Nothing was there to be measured: no value, and not 0. */
function sayValue(value: number | null | undefined, say: (value: number) => string): string {
  return value === null || value === undefined ? "–" : say(value);
}

/** Where the pointer is in a plot, in pixels. */
interface Pointer {
  readonly left: number;
  readonly top: number;
}
const outside: Pointer = { left: -10, top: -10 };

/** A stretch is drawn from its begin to its end, also before one of which nothing is known: two points each. */
function dataOf(
  times: readonly number[],
  series: readonly Series[],
  widthMs: number,
): UPlot.AlignedData {
  if (widthMs === 0)
    return [times.map((ms) => ms / 1_000), ...series.map(({ values }) => [...values])];
  return [
    times.flatMap((ms) => [ms / 1_000, (ms + widthMs - 1) / 1_000]),
    ...series.map(({ values }) => values.flatMap((value) => [value, value])),
  ];
}

function optionsOf(
  element: HTMLElement,
  given: {
    readonly series: readonly Series[];
    readonly height: number;
    readonly level: boolean;
    readonly filled: boolean;
    readonly widthMs: number;
    readonly format: (value: number) => string;
    readonly pointer: Pointer;
    readonly choose: (index: number | null) => void;
  },
): UPlot.Options {
  const colour = (name: string): string => colourOf(element, name);
  const axis = {
    stroke: colour("--plot-text"),
    grid: { stroke: colour("--plot-grid"), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(element).fontFamily}`,
  };
  return {
    width: element.clientWidth,
    height: given.height,
    legend: { show: false },
    // Points of a day are of days of UTC, and so are the days below them.
    ...(given.widthMs >= dayMs ? { tzDate: utcDate } : {}),
    cursor: { ...given.pointer, y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { y: { range: (_plot, low, high) => rangeOf(low, high, given.level) } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 64,
        size: 28,
        // Of a few days each is named once.
        ...(given.widthMs >= dayMs ? { incrs: dayIncrements } : {}),
        values: (...[, values, , , stepSeconds]) =>
          values.map((value) =>
            given.widthMs >= dayMs
              ? dayText(value * 1_000).slice(5)
              : axisTime(value * 1_000, stepSeconds * 1_000),
          ),
      },
      {
        ...axis,
        size: (_plot, values) => axisWidth(values),
        values: (_plot, values) => values.map((value) => given.format(value)),
      },
    ],
    series: [
      {},
      ...given.series.map(({ name, tone }) => ({
        label: name,
        stroke: colour(`--plot-${String(tone)}`),
        ...(given.filled ? { fill: colour(`--plot-${String(tone)}-fill`) } : {}),
        width: 1.5,
        points: { show: false },
        // A stretch has two points; one alone is a level that stays until the next.
        ...(given.level ? steps() : {}),
      })),
    ],
    hooks: { setCursor: [({ cursor }) => given.choose(cursor.idx ?? null)] },
  };
}

/** The colour that a variable has in the present look: a canvas knows no variables. */
function colourOf(element: HTMLElement, name: string): string {
  const before = element.style.color;
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = before;
  return color;
}

const dayMs = 86_400_000;
/** Seconds between the days that are named. */
const dayIncrements = [1, 2, 3, 5, 7, 10, 15, 30].map((days) => days * 86_400);

function utcDate(seconds: number): Date {
  return UPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC");
}

/** As wide as the longest of its words, whose letters are about as wide as digits; where there are few, as others are. */
function axisWidth(words: readonly string[] | null): number {
  return Math.max(52, ...(words ?? []).map(({ length }) => length * 6.5 + 14));
}

/** Hours of the day, with seconds where steps are shorter than a minute, and the date where a day begins; `stepMs` is from one to the next. */
function axisTime(ms: number, stepMs: number): string {
  const text = timeText(new Date(ms).toISOString());
  const startsDay = text.endsWith(" 00:00:00") || stepMs >= dayMs;
  if (startsDay) return text.slice(5, 10);
  return text.slice(11, stepMs < 60_000 ? 19 : 16);
}

/** Sums begin at 0; of a level that is far from it the changes are shown, as a line without an area. */
function rangeOf(low: number, high: number, level: boolean): [number, number] {
  if (!level) return [0, high > 0 ? high * 1.08 : 1];
  const room = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  return [Math.max(low - room, Math.min(low, 0)), high + room];
}

/** Each point holds until the next one. */
function steps(): Partial<UPlot.Series> {
  const paths = UPlot.paths.stepped?.({ align: 1 });
  return paths === undefined ? {} : { paths };
}
