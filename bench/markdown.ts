/** Rows as a table of Markdown; the first row's names are the columns. */
export function markdown(table: readonly Readonly<Record<string, string>>[]): string {
  const names = Object.keys(table[0] ?? {});
  const lines = [
    names,
    names.map(() => "---"),
    ...table.map((row) => names.map((name) => row[name] ?? "")),
  ];
  return lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}
