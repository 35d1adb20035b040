import { createHash } from "node:crypto";

// An archive is a file of JSON lines: receipts as `receiptToJson` has them, in the order in which their accounts resolved them, and
// before those of each account a line that says where the account's chain goes on. The hash of a receipt's line is SHA-256 over
// the 64 hexadecimal digits of the hash before and the line's UTF-8 bytes; the ledger keeps where the chain ends.

/** What stands before the first archived receipt of an account. */
export const firstArchiveHash = "0".repeat(64);

const version = "tributary-archive-1";

/** The line before an account's receipts: those behind its entry `after`, where the hash of what is archived already is `hash`. */
export function beginLine(accountId: string, after: number, hash: string): string {
  return JSON.stringify({ archive: version, account: accountId, after, hash });
}

/** The chain's hash after one more receipt's line. */
export function archiveHash(previous: string, line: string): string {
  return createHash("sha256").update(previous).update(line).digest("hex");
}

/** An account's receipts in a file up to one of them, and what their lines come to. */
export interface ArchivedPart {
  readonly accountId: string;
  readonly after: number;
  readonly from: string;
  readonly receipts: number;
  /** The account's entry that resolved the last of them. */
  readonly sequence: number;
  readonly hash: string;
}

/** Reads a file receipt by receipt; throws where a line is none of an archive. */
export async function* readArchive(lines: AsyncIterable<string>): AsyncGenerator<ArchivedPart> {
  let part: ArchivedPart | null = null;
  let number = 0;
  for await (const line of lines) {
    number += 1;
    const begun = beginOf(line);
    if (begun !== null) {
      part = begun;
      continue;
    }
    const sequence = sequenceOf(line, part?.accountId ?? "");
    if (part === null || sequence === null)
      throw new Error(`line ${String(number)} is no receipt of an archive`);
    part = { ...part, receipts: part.receipts + 1, sequence, hash: archiveHash(part.hash, line) };
    yield part;
  }
}

function beginOf(line: string): ArchivedPart | null {
  const json = parse(line);
  const { account, after, archive, hash } = json;
  if (archive !== version || typeof account !== "string" || typeof after !== "number") return null;
  if (typeof hash !== "string") return null;
  return { accountId: account, after, from: hash, receipts: 0, sequence: after, hash };
}

/** A receipt's head is `account:sequence:hash`. */
function sequenceOf(line: string, accountId: string): number | null {
  const { head } = parse(line);
  const [account, sequence] = typeof head === "string" ? head.split(":") : [];
  return account === accountId && sequence !== undefined ? Number(sequence) : null;
}

function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    const json: unknown = JSON.parse(line);
    return typeof json === "object" && json !== null ? { ...json } : {};
  } catch {
    return {};
  }
}
