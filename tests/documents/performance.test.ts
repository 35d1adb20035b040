import { expect, test } from "vitest";
import { documentedRatios, worseRatios } from "../../bench/ratios.ts";
import { peers } from "../../bench/peers.ts";
import { readDocument, rowsOf } from "./tables.ts";

const document = readDocument("docs/performance.md");
const scripts = Object.keys(
  (JSON.parse(readDocument("package.json")) as { scripts: Record<string, string> }).scripts,
);

test("docs/performance.md has the ratios that CI holds, and no other", () => {
  const [, section = ""] = document.split("### Ratios that CI holds");
  const table = section.split("\n###")[0] ?? "";
  const rows = rowsOf(table, /^a /).map(([row, times]) => ({ row, times: Number(times) }));
  expect(rows).toEqual(Object.values(documentedRatios));
});

test("docs/performance.md names each gateway that is measured, with its version", () => {
  const rows = rowsOf(document, /^`[a-z-]+`$/);
  for (const { formats, name, package: wanted } of peers) {
    const row = rows.find(([cell]) => cell === `\`${name}\``) ?? [];
    expect(row[1]).toBe(wanted.spec.replace("[proxy]", "").replace(/==|(?<=.)@/, " "));
    expect(row[3]).toBe(formats.map((format) => format.name).join(", "));
  }
});

test("each goal has what it was before, what it is now and a command that there is", () => {
  const [, section = ""] = document.split("\n## Goals");
  const goals = rowsOf(section.split("\n## ")[0] ?? "", /^(?!-+$|row$)/);
  expect(goals.length).toBeGreaterThan(10);
  for (const [row, before, now, goal, command = ""] of goals) {
    for (const cell of [row, before, now, goal]) expect(cell, row).not.toBe("");
    expect(command, row).toMatch(/^`npm run bench(?: -- [a-z-]+)?`$/);
    expect(scripts).toContain("bench");
  }
});

/** Figures of one arm, the same in three rounds. */
function figures(cpu: number): Map<string, number[]> {
  return new Map(Object.keys(documentedRatios).map((figure) => [figure, [cpu, cpu, cpu]]));
}

test("a ratio is worse when its median and its least are worse by half than documented, and always when it was not measured", () => {
  const [figure = "", documented] = Object.entries(documentedRatios)[1] ?? [];
  const times = documented?.times ?? Number.NaN;
  const worse = (rounds: readonly number[]): readonly string[] =>
    worseRatios(
      new Map([
        ["floor", figures(1)],
        ["sqlite", figures(1).set(figure, [...rounds])],
      ]),
    );
  expect(worse([times * 1.4, times * 1.4, times * 9])).toEqual([]);
  expect(worse([times, times * 1.6, times * 1.6])).toEqual([]);
  expect(worse([times * 1.6, times * 1.6, times * 9])).toEqual([
    expect.stringContaining(`CPU of a paced chunk: ${(times * 1.6).toFixed(2)} times the floor`),
  ]);
  expect(worse([])).toEqual(["CPU of a paced chunk: not measured"]);
});
