import { useEffect, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import { timeText } from "../words.ts";

/** One line or area of a plot. */
export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** Which of the plot's colours. */
  readonly tone: 1 | 2 | 3 | 4;
}

/**
 * Values over time, with the exact ones at the pointer, and as a table for those who do not see it. A click leads to what
 * is behind a point.
 */
export function Plot({
  format,
  height = 150,
  linkOf,
  series,
  times,
  title,
  widthMs,
  whenText,
}: {
  readonly title: string;
  /** Milliseconds since 1970, the begin of each point. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** What a point is called: when it begins. */
  readonly whenText: (ms: number) => string;
  /** How long a point is. */
  readonly widthMs: number;
  readonly height?: number;
  /** What a click on a point leads to. */
  readonly linkOf?: (ms: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const chosen = useRef<number | null>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null || times.length === 0) return;
    const draw = (): UPlot =>
      new UPlot(
        optionsOf(element, { series, height, format, widthMs, choose: choose }),
        [times.map((ms) => ms / 1_000), ...series.map(({ values }) => [...values])],
        element,
      );
    const choose = (index: number | null): void => {
      chosen.current = index;
      setAt(index);
    };
    let plot = draw();
    const again = (): void => {
      plot.destroy();
      plot = draw();
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
    };
  }, [times, series, height, widthMs]);
  const follow = (): void => {
    const ms = chosen.current === null ? undefined : times[chosen.current];
    if (ms !== undefined && linkOf !== undefined) location.hash = linkOf(ms).slice(1);
  };
  const total = (values: Series["values"]): number =>
    values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  return (
    <figure class="plot">
      <figcaption>
        <span class="plot-title">{title}</span>
        <span class="plot-when quiet">{at === null ? "in all" : whenText(times[at] ?? 0)}</span>
        <ul class="plot-keys">
          {series.map(({ name, tone, values }) => (
            <li key={name}>
              <span class={`plot-key plot-key-${String(tone)}`} /> {name}{" "}
              <b class="number">{format(at === null ? total(values) : (values[at] ?? 0))}</b>
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
                <tr key={ms}>
                  <th scope="row">
                    {linkOf === undefined ? whenText(ms) : <a href={linkOf(ms)}>{whenText(ms)}</a>}
                  </th>
                  {series.map(({ name, values }) => (
                    <td key={name} class="right number">
                      {format(values[index] ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function optionsOf(
  element: HTMLElement,
  given: {
    readonly series: readonly Series[];
    readonly height: number;
    readonly widthMs: number;
    readonly format: (value: number) => string;
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
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 64,
        size: 28,
        values: (_plot, values) => values.map((value) => axisTime(value * 1_000, given.widthMs)),
      },
      {
        ...axis,
        size: 52,
        values: (_plot, values) => values.map((value) => given.format(value)),
      },
    ],
    series: [
      {},
      ...given.series.map(({ name, tone }) => ({
        label: name,
        stroke: colour(`--plot-${String(tone)}`),
        fill: colour(`--plot-${String(tone)}-fill`),
        width: 1.5,
        points: { show: false },
        ...steps(given.widthMs),
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

/** Hours of the day, and the date where one begins. */
function axisTime(ms: number, widthMs: number): string {
  const text = timeText(new Date(ms).toISOString());
  const startsDay = text.endsWith(" 00:00:00") || widthMs >= dayMs;
  return startsDay ? text.slice(5, 10) : text.slice(11, 16);
}

/** Each point stands for a stretch of time, so it is drawn as one. */
function steps(widthMs: number): Partial<UPlot.Series> {
  const paths = widthMs > 0 ? UPlot.paths.stepped?.({ align: 1 }) : undefined;
  return paths === undefined ? {} : { paths };
}
