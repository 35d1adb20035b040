/** A row as a store's driver gives it; integers arrive as bigint, so that credit is never rounded. */
export type Row = Readonly<Record<string, unknown>>;

/** A column that holds text. */
export function textOf(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== "string") throw wrongColumn(column);
  return value;
}

/** The same, where the column may be null. */
export function textOrNullOf(row: Row, column: string): string | null {
  return row[column] === null ? null : textOf(row, column);
}

/** A column that holds an id with this prefix. */
export function idOf<Prefix extends string>(
  row: Row,
  column: string,
  prefix: Prefix,
): `${Prefix}${string}` {
  const id = textOf(row, column);
  if (!hasPrefix(id, prefix)) throw wrongColumn(column);
  return id;
}

/** A column that holds an integer of any size. */
export function bigOf(row: Row, column: string): bigint {
  const value = row[column];
  if (typeof value !== "bigint") throw wrongColumn(column);
  return value;
}

/** A column that holds an integer of 53 bits at most: counts and times. */
export function numberOf(row: Row, column: string): number {
  return Number(bigOf(row, column));
}

/** The same, where the column may be null. */
export function numberOrNullOf(row: Row, column: string): number | null {
  return row[column] === null ? null : numberOf(row, column);
}

/** A column that holds bytes. */
export function bytesOf(row: Row, column: string): Uint8Array {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw wrongColumn(column);
  return value;
}

function hasPrefix<Prefix extends string>(
  text: string,
  prefix: Prefix,
): text is `${Prefix}${string}` {
  return text.startsWith(prefix);
}

function wrongColumn(column: string): Error {
  return new Error(`ledger: column ${column} is missing or of another type`);
}
