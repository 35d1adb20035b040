import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { countPresent } from "../ledger/sqlite/presence.ts";
import { CommandError, type Outcome, type Shell } from "./command.ts";
import { counted } from "./counted.ts";
import { ensureConfig } from "./settings.ts";
import { verifyLedger } from "./verify.ts";

/** `ledger restore` */
export async function restoreLedger(
  shell: Shell,
  from: string,
  options: { readonly against?: string | undefined },
): Promise<Outcome> {
  const config = ensureConfig(shell);
  const { database } = config;
  if (database.kind === "postgres")
    throw impossible(
      "The ledger is no SQLite file. Restore PostgreSQL with its own tools: docs/recovery.md.",
    );
  const backup = resolve(shell.folder, from);
  const { path } = database;
  ensureBackup(backup, path);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  ensureUnused(path);
  // Beside the ledger, so that it takes its place by a name alone.
  const folder = mkdtempSync(join(dirname(path), ".restore-"));
  try {
    const copy = join(folder, "ledger.sqlite");
    copyFileSync(backup, copy);
    chmodSync(copy, 0o600);
    const verified = await verifyAt(copy, shell, options);
    const { json, text } = verified;
    if (verified.exitCode !== 0)
      return {
        json: { ...json, path, replaced: null, after: null },
        text: `${text}Nothing was replaced.\n`,
        exitCode: 1,
      };
    const after = existsSync(path) ? await countAfter(path, shell, verified.heads) : [];
    sync(copy);
    ensureUnused(path);
    const replaced = setAside(path);
    renameSync(copy, path);
    sync(dirname(path));
    return {
      json: { ...json, path, replaced, after },
      text: `${path}: ${text}${describeAfter(replaced, after)}`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Entries of an account that came after the backup. */
interface After {
  readonly account: string;
  readonly entries: number;
}

function ensureBackup(backup: string, path: string): void {
  if (!existsSync(backup)) throw impossible(`There is no backup at ${backup}.`);
  if (resolve(backup) === resolve(path)) throw impossible(`${path} is the ledger itself.`);
  // A plain copy of the one file lacks what is in its log.
  if (existsSync(`${backup}-wal`))
    throw impossible(
      `${backup} is a ledger that is in use, as its log is beside it: make a backup of it by \`tributary ledger backup\`.`,
    );
}

function ensureUnused(path: string): void {
  const processes = countPresent(path);
  if (processes === 0) return;
  throw impossible(
    `${counted(processes, "service has", "services have")} this ledger open (${path}), so nothing was replaced. Stop every service on it, and run this again.`,
  );
}

/** What `verify` says of a file. */
interface Verified {
  readonly json: object;
  readonly text: string;
  readonly exitCode: 0 | 1;
  /** [] where it does not add up. */
  readonly heads: readonly string[];
}

/** Opening it brings it up to this version; what ran at the moment of the backup is given back by the first service. */
async function verifyAt(
  path: string,
  shell: Shell,
  options: { readonly against?: string | undefined },
): Promise<Verified> {
  const folder = mkdtempSync(`${path}-heads-`);
  try {
    const saveHeads = join(folder, "heads");
    const address = { TRIBUTARY_DATABASE_URL: `sqlite:${path}`, TRIBUTARY_DATABASE_URL_FILE: "" };
    const environment = { ...shell.environment(), ...address };
    const there: Shell = { ...shell, json: true, environment: () => environment };
    const { exitCode = 0, json, text } = await verifyLedger(there, { ...options, saveHeads });
    const heads = exitCode === 0 ? readFileSync(saveHeads, "utf8").split("\n").slice(0, -1) : [];
    return { json: json as object, text, exitCode, heads };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** null: what is there cannot be read or does not add up, which may be why a backup is wanted. */
async function countAfter(
  path: string,
  shell: Shell,
  heads: readonly string[],
): Promise<readonly After[] | null> {
  const restored = new Map(heads.map(entriesOf));
  try {
    const before = await verifyAt(path, shell, {});
    if (before.exitCode !== 0) return null;
    return before.heads
      .map(entriesOf)
      .map(([account, entries]) => ({ account, entries: entries - (restored.get(account) ?? 0) }))
      .filter(({ entries }) => entries > 0);
  } catch {
    return null;
  }
}

/** Of `ACCOUNT:NUMBER:HASH`. */
function entriesOf(head: string): [account: string, entries: number] {
  const [account = "", sequence = "0"] = head.split(":");
  return [account, Number(sequence)];
}

/** Returns where the ledger is now, with its log; null: there was none. */
function setAside(path: string): string | null {
  if (!existsSync(path)) return null;
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const aside = `${path}.replaced-${time}`;
  for (const suffix of ["", "-wal", "-shm"])
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
  return aside;
}

function describeAfter(replaced: string | null, after: readonly After[] | null): string {
  if (replaced === null) return "";
  const where = `What was there is in ${replaced}.`;
  if (after === null)
    return `${where} It cannot be read or does not add up, so what came after the backup is not known.\n`;
  if (after.length === 0) return `${where} It had nothing that the backup has not.\n`;
  const lines = after.map(
    ({ account, entries }) => `  ${account}: ${counted(entries, "entry", "entries")}\n`,
  );
  return `${where} It has entries that came after the backup:\n${lines.join("")}`;
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function impossible(message: string): CommandError {
  return new CommandError("not_possible", 1, message);
}
