const width = 72;
const height = 18;

/** How values went, without numbers: these stand beside it, and the page behind it has them one by one. */
export function Sparkline({ values }: { readonly values: readonly number[] }) {
  const most = Math.max(...values, 1);
  const step = width / Math.max(values.length, 1);
  const bars = values
    .map((value, at) => ({ x: at * step, part: (value / most) * (height - 1) }))
    .filter(({ part }) => part > 0)
    // The least of what was charged is still seen.
    .map(({ part, x }) => `M${x.toFixed(1)} ${String(height)}v-${Math.max(part, 1).toFixed(1)}`);
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${String(width)} ${String(height)}`}
      width={width}
      height={height}
      aria-hidden="true"
    >
      <path
        d={bars.join("")}
        stroke-width={step * 0.7}
        transform={`translate(${String(step / 2)})`}
      />
    </svg>
  );
}
