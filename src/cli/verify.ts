import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { VerifyReport } from "../ledger/verify-journal.ts";
import { CommandError, misuse, type Outcome, type Shell } from "./command.ts";
import { counted } from "./counted.ts";
import { withLedger } from "./open-ledger.ts";

interface VerifyOptions {
  readonly against?: string | undefined;
  readonly saveHeads?: string | undefined;
}

/** `verify` */
export async function verifyLedger(shell: Shell, options: VerifyOptions): Promise<Outcome> {
  const against = readHeads(options.against, shell);
  const file = options.saveHeads;
  return withLedger(shell, async (ledger) => {
    const report = await ledger.verify(against, file !== undefined);
    if (file !== undefined && report.ok) writeHeads(resolve(shell.folder, file), report.heads);
    const { problemsTotal, ...rest } = report;
    return reportOutcome({ ...rest, problems_total: problemsTotal }, against.length);
  });
}

/** What verifying found, as the API answers it: of so many `heads` that were given. */
export function reportOutcome(given: unknown, heads = 0): Outcome {
  if (given === null)
    throw new CommandError("failed", 1, "Verifying has failed: the service's log says why.");
  const { accounts, entries, ok, problems, problems_total } = given as ReportJson;
  return {
    json: { ok, entries, accounts, problems, problems_total },
    text: describe({ accounts, entries, ok, problems, problems_total }, heads),
    exitCode: ok ? 0 : 1,
  };
}

interface ReportJson extends Omit<VerifyReport, "problemsTotal" | "heads"> {
  readonly problems_total: number;
}

function readHeads(text: string | undefined, shell: Shell): readonly string[] {
  if (text === undefined) return [];
  const list = text.startsWith("@") ? readFile(resolve(shell.folder, text.slice(1))) : text;
  const heads = list.split(/[\s,]+/).filter((head) => head !== "");
  if (heads.length === 0) throw misuse("--against names no head.");
  return heads;
}

function readFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw misuse(`--against: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function writeHeads(path: string, heads: readonly string[]): void {
  try {
    writeFileSync(path, heads.map((head) => `${head}\n`).join(""));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new CommandError("not_possible", 1, `The heads could not be written: ${message}`);
  }
}

function describe(report: ReportJson, heads: number): string {
  const { entries, ok, problems, problems_total: problemsTotal } = report;
  const size = `${counted(entries, "entry", "entries")} of ${counted(report.accounts, "account", "accounts")}`;
  if (ok)
    return `ok: ${size}, all of it adds up${heads === 0 ? "" : ", and it continues the heads given"}.\n`;
  const lines = problems.map(({ account, code, message, request, sequence }) => {
    const entry = sequence === null ? "" : ` entry ${String(sequence)}`;
    return `${account}${entry}${request === null ? "" : ` (${request})`}: ${message} [${code}]\n`;
  });
  const more = problemsTotal > problems.length ? `, of which these are the first` : "";
  return `${lines.join("")}${size}: ${counted(problemsTotal, "problem", "problems")}${more}.\n`;
}
