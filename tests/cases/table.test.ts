import { describe, expect, it } from "vitest";
import { formatLosses } from "../documents/losses/formats.ts";
import { valuesAt } from "../documents/losses/places.ts";
import { caseFiles, readJson } from "./files.ts";
import { table } from "./table.ts";

const files = [...caseFiles("requests"), ...caseFiles("generations")];

describe("the table of cases", () => {
  it("names every row once", () => {
    expect(duplicates(table.map((row) => row.id))).toEqual([]);
  });

  it("has a case in every format of a row", () => {
    const missing = table.flatMap((row) =>
      [...row.kinds.keys()].flatMap((format) =>
        row.cases.some((id) => files.some((file) => file.caseId === id && file.format === format))
          ? []
          : [`${row.id}: no case in ${format}`],
      ),
    );
    expect(missing).toEqual([]);
  });

  it("has a case with one of the fields that a row of docs/losses.md is about", () => {
    const missing = table.flatMap(({ cases, kinds, loss }) =>
      [...kinds.keys()].flatMap((format) => {
        if (loss === null) return [];
        const fields = formatLosses[format][loss]?.fields ?? [];
        const bodies = files
          .filter((file) => file.format === format && cases.includes(file.caseId))
          .map((file) => (file.kind === "refused" ? readJson(file)["request"] : readJson(file)));
        const shown = bodies.some((body) => fields.some((field) => valuesAt(body, field).length > 0));
        return shown ? [] : [`${loss}: no field in a case of ${format}`];
      }),
    );
    expect(missing).toEqual([]);
  });

  it("names no case that has no file", () => {
    const known = new Set(files.map((file) => file.caseId));
    const missing = table.flatMap((row) => row.cases.filter((id) => !known.has(id)));
    expect(missing).toEqual([]);
  });

  it("has a row for every case file, of a kind that fits", () => {
    const misfits = files.flatMap((file) => {
      const rows = table.filter((row) => row.cases.includes(file.caseId));
      if (rows.length === 0) return [`${file.name}: no row`];
      return rows.flatMap((row) => {
        const { format } = file;
        if (format === null) return [];
        const kind = row.kinds.get(format);
        if (kind === undefined) {
          return rows.length > 1 ? [] : [`${file.name}: its row ${row.id} is not for ${format}`];
        }
        const isRefusal = file.kind === "refused";
        return isRefusal === (kind === "refused") ? [] : [`${file.name}: row of ${kind}`];
      });
    });
    expect(misfits).toEqual([]);
  });

  it("gives every accepted request its conversation and every generation its goldens", () => {
    const incomplete = [...new Set(files.map((file) => file.caseId))].flatMap((id) => {
      const own = files.filter((file) => file.caseId === id);
      const kinds = new Set(own.map((file) => file.kind));
      if (kinds.has("refused")) return kinds.size === 1 ? [] : [`${id}: refused and more`];
      if (kinds.has("request") || kinds.has("conversation")) {
        return kinds.has("request") && kinds.has("conversation") ? [] : [`${id}: half a request`];
      }
      const streams = own.filter((file) => file.kind === "stream").length;
      return kinds.has("events") && streams > 0 ? [] : [`${id}: half a generation`];
    });
    expect(incomplete).toEqual([]);
  });
});

function duplicates(values: readonly string[]): readonly string[] {
  return values.filter((value, index) => values.indexOf(value) !== index);
}
