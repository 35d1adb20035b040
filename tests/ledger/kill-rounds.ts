import { spawn } from "node:child_process";
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { auditProblems, defaultSettings, temporaryLedger } from "./support.ts";
import { openRandom } from "../doubles/random.ts";

/** What one ledger went through. */
export interface KillReport {
  readonly kills: number;
  /** Answers that were seen before a kill. */
  readonly admitted: number;
  readonly settled: number;
  /** Reservations that a kill left open. */
  readonly leftOpen: number;
  /** What was seen and is not there, or does not add up; [] is what is wanted. */
  readonly problems: readonly string[];
}

/** Kills a working process again and again on one ledger, and compares what it said with what is there afterwards. */
export async function runKillRounds(rounds: number, seed: number): Promise<KillReport> {
  using file = temporaryLedger();
  const keys = await prepareKillLedger(file.path);
  const random = openRandom(seed);
  const report = { kills: 0, admitted: 0, settled: 0, leftOpen: 0 };
  const problems: string[] = [];
  const seen = new Map<string, string>();
  for (let round = 0; round < rounds; round += 1) {
    const lines = await killedWork(["full", file.path, ...keys], {
      afterLines: 1 + Math.floor(random() * 400),
      afterMs: random() * 4,
    });
    report.kills += 1;
    noteAnswers(lines, seen);
    for (const verb of ["admitted", "settled"] as const)
      report[verb] += lines.filter((line) => line.startsWith(`${verb} `)).length;
    problems.push(...auditProblems(file.path), ...unkept(file.path, seen));
    report.leftOpen += openReservations(file.path);
    problems.push(...(await heldAfterRecovery(file.path)));
  }
  return { ...report, problems };
}

/** Makes a ledger for the process that is killed, with two accounts; returns a key of each. */
export async function prepareKillLedger(path: string): Promise<readonly string[]> {
  await using ledger = await openSqliteLedger({ ...defaultSettings, path }, { now: Date.now });
  const keys: string[] = [];
  for (const name of ["one", "two"]) {
    const account = await ledger.createAccount(name, 10n ** 15n);
    keys.push((await ledger.createKey(account.id, name)).secret);
  }
  return keys;
}

/** The whole lines of a child that was killed with SIGKILL some time after it had said so many. */
async function killedWork(
  parameters: readonly string[],
  when: { readonly afterLines: number; readonly afterMs: number },
): Promise<readonly string[]> {
  const path = fileURLToPath(new URL("kill-child.ts", import.meta.url));
  const child = spawn(process.execPath, [path, ...parameters], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  let lines = 0;
  const enough = new Promise<void>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      lines += text.split("\n").length - 1;
      if (lines >= when.afterLines) resolve();
    });
  });
  const closed = once(child, "close");
  await Promise.race([enough, closed]);
  // Real time: the process is to die anywhere in its work, also where it says nothing.
  await sleep(when.afterMs);
  child.kill("SIGKILL");
  const [, signal] = await closed;
  if (signal !== "SIGKILL") throw new Error(`the child ended by itself: ${output.slice(-500)}`);
  // The last line may be half a line; what was not said whole was not answered.
  return output.split("\n").slice(0, -1);
}

/** Keeps each answer of these lines, by what it was and for which request; returns how many there were. */
export function noteAnswers(lines: readonly string[], seen: Map<string, string>): number {
  let count = 0;
  for (const line of lines) {
    const [verb = "", requestId = "", ...facts] = line.split(" ");
    if (verb !== "admitted" && verb !== "settled") continue;
    seen.set(`${verb} ${requestId}`, facts.join(" "));
    count += 1;
  }
  return count;
}

/** Every answer that was seen must be in the file, with its numbers. */
export function unkept(path: string, seen: ReadonlyMap<string, string>): readonly string[] {
  using database = new DatabaseSync(path, { readOnly: true, readBigInts: true });
  const find = database.prepare(
    "select reserved_nanos, state, charged_nanos from reservation where request_id = ?",
  );
  const problems: string[] = [];
  for (const [what, facts] of seen) {
    const [verb, requestId = ""] = what.split(" ");
    const row = find.get(requestId);
    const kept =
      verb === "admitted"
        ? String(row?.["reserved_nanos"]) === facts
        : row?.["state"] === "settled" && `${String(row["charged_nanos"])} true` === facts;
    if (!kept) problems.push(`seen and not kept: ${what} ${facts}`);
  }
  return problems;
}

function openReservations(path: string): number {
  using database = new DatabaseSync(path, { readOnly: true });
  const row = database
    .prepare("select count(*) as count from reservation where state = 'open'")
    .get();
  return Number(row?.["count"]);
}

/** A new process, a lease later: everything that the dead one held has been given back. */
async function heldAfterRecovery(path: string): Promise<readonly string[]> {
  await using ledger = await openSqliteLedger(
    { ...defaultSettings, path },
    { now: () => Date.now() + defaultSettings.leaseMs },
  );
  await ledger.expire();
  const accounts = await ledger.listAccounts();
  return [
    ...auditProblems(path),
    ...accounts
      .filter(({ heldNanos }) => heldNanos !== 0n)
      .map(({ heldNanos, id }) => `${id} still holds ${String(heldNanos)}`),
  ];
}
