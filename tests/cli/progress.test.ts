import { describe, expect, it } from "vitest";
import { openProgress } from "../../src/cli/progress.ts";

function open(terminal: boolean) {
  let nowMs = 0;
  const written: string[] = [];
  const output = { write: (text: string) => void written.push(text), terminal };
  const display = openProgress(output, () => nowMs);
  return { display, written, wait: (ms: number) => (nowMs += ms) };
}

describe("the progress of a download", () => {
  it("is a line every few seconds where nobody looks, and one at the end", () => {
    const { display, wait, written } = open(false);
    const totalBytes = 100_000_000;
    for (let step = 0; step <= 100; step += 1) {
      display.report({ bytes: step * 1_000_000, totalBytes });
      wait(100);
    }
    display.report({ bytes: totalBytes, totalBytes });
    expect(written).toEqual([
      "downloading weights: 0 %, 0.0 of 100.0 MB\n",
      "downloading weights: 50 %, 50.0 of 100.0 MB\n",
      "downloading weights: 100 %, 100.0 of 100.0 MB\n",
    ]);
  });

  it("is a bar on a terminal, which other text does not run into", () => {
    const { display, wait, written } = open(true);
    display.report({ bytes: 50, totalBytes: 100 });
    display.report({ bytes: 51, totalBytes: 100 });
    expect(written).toHaveLength(1);
    expect(written[0]).toMatch(/^\r\[#{15} {15}\] 50 %/);
    display.pause();
    display.pause();
    expect(written.splice(0).slice(1)).toEqual(["\n"]);
    wait(1_000);
    display.report({ bytes: 100, totalBytes: 100 });
    expect(written.join("")).toMatch(/^\r\[#{30}\] 100 %.*\n$/);
    display.pause();
    expect(written).toHaveLength(1);
  });

  it("needs no total", () => {
    const { display, written } = open(false);
    display.report({ bytes: 1_500_000, totalBytes: null });
    expect(written).toEqual(["downloading weights: 1.5 MB\n"]);
  });
});
