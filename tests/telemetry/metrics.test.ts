import { describe, expect, it } from "vitest";
import { MetricRegistry } from "../../src/telemetry/metrics.ts";

describe("a metric", () => {
  it("that counts starts at 0 without labels and adds up by labels", () => {
    const registry = new MetricRegistry();
    const plain = registry.counter("plain_total", "Plain.");
    const labelled = registry.counter("labelled_total", "Labelled.", ["a", "b"]);
    labelled.add(1, "x", "y");
    labelled.add(2.5, "x", "y");
    labelled.add(1, "x", 'q"\\\n');
    plain.add(0);
    expect(registry.render()).toBe(
      [
        "# HELP plain_total Plain.",
        "# TYPE plain_total counter",
        "plain_total 0",
        "# HELP labelled_total Labelled.",
        "# TYPE labelled_total counter",
        'labelled_total{a="x",b="y"} 3.5',
        'labelled_total{a="x",b="q\\"\\\\\\n"} 1',
        "",
      ].join("\n"),
    );
  });

  it("that distributes cumulates its buckets, each bound included", () => {
    const registry = new MetricRegistry();
    const naming = { name: "s", help: "Seconds.", labels: ["f"] };
    const histogram = registry.histogram(naming, [0.5, 1]);
    for (const value of [0.25, 0.5, 0.75, 4]) histogram.observe(value, "chat");
    expect(registry.render()).toBe(
      [
        "# HELP s Seconds.",
        "# TYPE s histogram",
        's_bucket{f="chat",le="0.5"} 2',
        's_bucket{f="chat",le="1"} 3',
        's_bucket{f="chat",le="+Inf"} 4',
        's_sum{f="chat"} 5.5',
        's_count{f="chat"} 4',
        "",
      ].join("\n"),
    );
  });

  it("that gauges is read at each render", () => {
    const registry = new MetricRegistry();
    let now = 1;
    registry.gauge({ name: "g", help: "Now.", labels: [] }, () => [{ labels: [], value: now }]);
    expect(registry.render()).toContain("g 1\n");
    now = 7;
    expect(registry.render()).toContain("g 7\n");
  });

  it("refuses a second use of its name, a wrong number of labels, and bounds out of order", () => {
    const registry = new MetricRegistry();
    const counter = registry.counter("a_total", "A.", ["x"]);
    expect(() => registry.counter("a_total", "A.")).toThrow("exists already");
    expect(() => counter.add(1)).toThrow("has 1 labels, not 0");
    expect(() => registry.histogram({ name: "h", help: "", labels: [] }, [2, 1])).toThrow(
      "do not ascend",
    );
  });
});
