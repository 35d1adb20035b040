/** Values of the labels, in the order of the metric's label names. */
type LabelValues = readonly string[];

/** One value, with its labels, of a gauge that is read when somebody asks. */
export interface GaugeReading {
  readonly labels: LabelValues;
  readonly value: number;
}

/** What a metric is called and what it says. */
interface MetricName {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

interface Metric {
  render(): string;
}

/** The metrics of one process, in the text format that Prometheus reads. */
export class MetricRegistry {
  readonly #metrics = new Map<string, Metric>();

  counter(name: string, help: string, labels: readonly string[] = []): Counter {
    return this.#add(name, new Counter({ name, help, labels }));
  }

  histogram(naming: MetricName, bucketBounds: readonly number[]): Histogram {
    return this.#add(naming.name, new Histogram(naming, bucketBounds));
  }

  /** `read` is called at each render. */
  gauge(naming: MetricName, read: () => readonly GaugeReading[]): void {
    this.#add(naming.name, { render: () => renderGauge(naming, read()) });
  }

  render(): string {
    return [...this.#metrics.values()].map((metric) => metric.render()).join("");
  }

  #add<Added extends Metric>(name: string, metric: Added): Added {
    if (this.#metrics.has(name)) throw new Error(`metric ${name} exists already`);
    this.#metrics.set(name, metric);
    return metric;
  }
}

/** A number that only grows. */
export class Counter implements Metric {
  readonly #naming: MetricName;
  readonly #values = new Map<string, number>();

  constructor(naming: MetricName) {
    this.#naming = naming;
    // A counter that appears with its first event hides that event from rate().
    if (naming.labels.length === 0) this.#values.set("", 0);
  }

  /** Series that are there from the start, at 0. */
  begin(series: readonly LabelValues[]): this {
    for (const labels of series) this.add(0, ...labels);
    return this;
  }

  add(amount: number, ...labels: LabelValues): void {
    const key = labelText(this.#naming, labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + amount);
  }

  render(): string {
    const { name } = this.#naming;
    const lines = [...this.#values].map(
      ([key, value]) => `${name}${braces(key)} ${number(value)}\n`,
    );
    return `${head(this.#naming, "counter")}${lines.join("")}`;
  }
}

interface Distribution {
  /** One count a bucket, not yet cumulated; the last is for what exceeds every bound. */
  readonly counts: number[];
  sum: number;
}

/** How values are distributed over fixed buckets. */
export class Histogram implements Metric {
  readonly #naming: MetricName;
  readonly #bounds: readonly number[];
  readonly #distributions = new Map<string, Distribution>();

  constructor(naming: MetricName, bounds: readonly number[]) {
    if (bounds.some((bound, index) => bound <= (bounds[index - 1] ?? -Infinity)))
      throw new Error(`metric ${naming.name}: the bounds do not ascend`);
    this.#naming = naming;
    this.#bounds = bounds;
  }

  /** Series that are there from the start, with nothing in them. */
  begin(series: readonly LabelValues[]): this {
    for (const labels of series) this.#distributionOf(labels);
    return this;
  }

  observe(value: number, ...labels: LabelValues): void {
    const distribution = this.#distributionOf(labels);
    const found = this.#bounds.findIndex((bound) => value <= bound);
    const index = found === -1 ? this.#bounds.length : found;
    distribution.counts[index] = (distribution.counts[index] ?? 0) + 1;
    distribution.sum += value;
  }

  render(): string {
    const lines = [...this.#distributions].map(([key, one]) => this.#renderOne(key, one));
    return `${head(this.#naming, "histogram")}${lines.join("")}`;
  }

  #distributionOf(labels: LabelValues): Distribution {
    const key = labelText(this.#naming, labels);
    let distribution = this.#distributions.get(key);
    if (distribution === undefined) {
      distribution = { counts: Array.from({ length: this.#bounds.length + 1 }, () => 0), sum: 0 };
      this.#distributions.set(key, distribution);
    }
    return distribution;
  }

  #renderOne(key: string, { counts, sum }: Distribution): string {
    const { name } = this.#naming;
    const comma = key === "" ? "" : ",";
    let total = 0;
    let text = "";
    for (const [index, count] of counts.entries()) {
      total += count;
      const bound = this.#bounds[index];
      const edge = bound === undefined ? "+Inf" : number(bound);
      text += `${name}_bucket{${key}${comma}le="${edge}"} ${number(total)}\n`;
    }
    return `${text}${name}_sum${braces(key)} ${number(sum)}\n${name}_count${braces(key)} ${number(total)}\n`;
  }
}

function renderGauge(naming: MetricName, readings: readonly GaugeReading[]): string {
  const lines = readings.map(
    ({ labels, value }) => `${naming.name}${braces(labelText(naming, labels))} ${number(value)}\n`,
  );
  return `${head(naming, "gauge")}${lines.join("")}`;
}

function head({ name, help }: MetricName, type: "counter" | "gauge" | "histogram"): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function labelText({ name, labels }: MetricName, values: LabelValues): string {
  if (labels.length !== values.length)
    throw new Error(
      `metric ${name} has ${String(labels.length)} labels, not ${String(values.length)}`,
    );
  return labels.map((label, index) => `${label}="${escapeLabel(values[index] ?? "")}"`).join(",");
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function braces(key: string): string {
  return key === "" ? "" : `{${key}}`;
}

function number(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}
