/** What a cell of a CSV file can hold. */
export type CsvCell = string | number | null;

// What a spreadsheet takes for the begin of a formula, in its usual and its full width, or skips before one.
const formula = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/u;
const plainNumber = /^-?\d+(?:\.\d+)?$/u;

/** One line of a CSV file, as RFC 4180 has it. No cell becomes a formula: one that would begins with an apostrophe. */
export function csvLine(cells: readonly CsvCell[]): string {
  return `${cells.map(cellOf).join(",")}\r\n`;
}

function cellOf(cell: CsvCell): string {
  if (cell === null) return "";
  const text = String(cell);
  const safe = formula.test(text) && !plainNumber.test(text) ? `'${text}` : text;
  return /[",\s]/u.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
