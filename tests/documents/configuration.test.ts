import { expect, test } from "vitest";
import { variables } from "../../src/config/environment.ts";
import { describeKind, type Variable } from "../../src/config/variable-kinds.ts";
import { readDocument, rowsOf } from "./tables.ts";

/** The row that docs/configuration.md must have for a setting. */
function expectedRow(name: string, variable: Variable): readonly string[] {
  const { default: value, kind, meaning, otherwise } = variable;
  const shown = value === null ? (otherwise ?? "") : `\`${value}\``;
  return [`\`${name}\``, shown, describeKind(kind), meaning];
}

test("docs/configuration.md has a row for every setting, as the source says it, and no other", () => {
  const rows = rowsOf(readDocument("docs/configuration.md"), /^`TRIBUTARY_/);
  expect(rows).toEqual(Object.entries(variables).map(([name, row]) => expectedRow(name, row)));
});

test.each(["README.md", "AGENTS.md", "docs/clients.md", "docs/ARCHITECTURE.md", "docs/errors.md"])(
  "%s names no setting that does not exist",
  (path) => {
    const names = new Set(readDocument(path).match(/TRIBUTARY_[A-Z_]*[A-Z]/g));
    expect([...names].filter((name) => !Object.hasOwn(variables, name))).toEqual([]);
  },
);
