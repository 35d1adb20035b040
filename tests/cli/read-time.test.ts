import { afterEach, describe, expect, it, vi } from "vitest";
import { CommandError } from "../../src/cli/command.ts";
import { readTime } from "../../src/cli/read-time.ts";

const nowMs = Date.UTC(2026, 2, 10, 12);
const read = (text: string): string => new Date(readTime(text, "--since", nowMs)).toISOString();

afterEach(() => vi.unstubAllEnvs());

describe("a time on the command line", () => {
  it.each([
    ["2026-01-31", "2026-01-31T00:00:00.000Z"],
    ["2026-01-31T10:30", "2026-01-31T10:30:00.000Z"],
    ["2026-01-31T10:30:15.5", "2026-01-31T10:30:15.500Z"],
    ["2026-01-31T10:30:15Z", "2026-01-31T10:30:15.000Z"],
    ["2026-01-31T10:30+02:00", "2026-01-31T08:30:00.000Z"],
    ["2028-02-29", "2028-02-29T00:00:00.000Z"],
    ["2026-03-01T00:30+02:00", "2026-02-28T22:30:00.000Z"],
    ["24h", "2026-03-09T12:00:00.000Z"],
    ["7d", "2026-03-03T12:00:00.000Z"],
  ])("%s is %s, wherever the machine is", (text, time) => {
    vi.stubEnv("TZ", "Asia/Tokyo");
    expect(new Date(0).getHours()).toBe(9);
    expect(read(text)).toBe(time);
  });

  it.each([
    "",
    "today",
    "7",
    "7w",
    "-1d",
    "2026",
    "2026-13-01",
    "2026-02-30",
    "2026-02-29T10:30Z",
    "2026-04-31T23:00:00+02:00",
    "2026-01-31 10:30",
    "1700000000000",
  ])("%j is none", (text) => {
    expect(() => read(text)).toThrow(CommandError);
    expect(() => read(text)).toThrow(/^--since .* is no time: write it as/);
  });
});
