import type { Output } from "./command.ts";

/** Bytes on their way in; `totalBytes` is null while unknown. */
export interface Progress {
  readonly bytes: number;
  readonly totalBytes: number | null;
}

/** Shows a download: a bar on a terminal, a line every few seconds otherwise. */
export interface ProgressDisplay {
  /** Whether anything was reported. */
  readonly begun: boolean;
  report(progress: Progress): void;
  /** Leaves the line of the bar, so that other text begins on its own. */
  pause(): void;
}

const lineEveryMs = 5_000;
const barEveryMs = 100;
const barCharacters = 30;

/** Opens the display of one download. `now` gives milliseconds. */
export function openProgress(output: Output, now: () => number): ProgressDisplay {
  const everyMs = output.terminal ? barEveryMs : lineEveryMs;
  let lastAt = -Infinity;
  let barIsOpen = false;
  let wasComplete = false;
  return {
    get begun() {
      return lastAt > -Infinity;
    },
    report(progress) {
      const complete = progress.bytes === progress.totalBytes;
      if (complete ? wasComplete : now() - lastAt < everyMs) return;
      wasComplete = complete;
      lastAt = now();
      if (!output.terminal) return output.write(`downloading weights: ${amounts(progress)}\n`);
      output.write(`\r${bar(progress)} ${amounts(progress)} \u001B[K${complete ? "\n" : ""}`);
      barIsOpen = !complete;
    },
    pause() {
      if (barIsOpen) output.write("\n");
      barIsOpen = false;
    },
  };
}

function bar({ bytes, totalBytes }: Progress): string {
  const share = totalBytes === null || totalBytes === 0 ? 0 : Math.min(bytes / totalBytes, 1);
  const full = Math.floor(share * barCharacters);
  return `[${"#".repeat(full)}${" ".repeat(barCharacters - full)}]`;
}

function amounts({ bytes, totalBytes }: Progress): string {
  if (totalBytes === null) return `${megabytes(bytes)} MB`;
  const percent = totalBytes === 0 ? 100 : Math.floor((bytes / totalBytes) * 100);
  return `${String(percent)} %, ${megabytes(bytes)} of ${megabytes(totalBytes)} MB`;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
