import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { costNanos, formatCredit } from "../../src/admission/price.ts";
import { startProgram } from "../cli/start-program.ts";
import {
  delta,
  finish,
  type ScriptedDeployment,
  startScriptedDeployment,
} from "../doubles/scripted-deployment.ts";
import { auditProblems } from "../ledger/support.ts";
import { configOf, formats, post } from "./start-service.ts";
import { openOperatorLedger } from "./operator-ledger.ts";
import { openRandom } from "../doubles/random.ts";

/** What a service went through that was killed again and again. */
export interface ServiceKillReport {
  readonly kills: number;
  /** Generations that were seen to be admitted, and seen to be settled. */
  readonly admitted: number;
  readonly settled: number;
  /** Of the latter, those whose settlement the service itself had called late, so that it promised nothing. */
  readonly late: number;
  /** Reservations that a kill left open. */
  readonly leftOpen: number;
  /** Exit code of `doctor` at the end. */
  readonly doctor: number | null;
  /** What was seen and is not there, or does not add up; [] is what is wanted. */
  readonly problems: readonly string[];
}

/** One answer that a client saw begin: it had been admitted with this allowance. */
interface Seen {
  readonly requestId: string;
  readonly allowance: number;
  /** Tokens of input and output in an end that it saw; null: it saw none. */
  usage: readonly [number, number] | null;
}

const leaseSeconds = 2;
const streamsAtOnce = 20;
// What a kill leaves open takes slots until its lease ends, so rounds take turns with accounts.
const accountSets = 4;
const accountsPerSet = streamsAtOnce / 4;
const credit = 1_000_000_000_000n;

/** Kills the whole service at seeded points under 20 streams, and compares what clients saw with the ledger. */
export async function runServiceKills(rounds: number, seed: number): Promise<ServiceKillReport> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-kills-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const random = openRandom(seed);
  const deployment = opened.use(await startScriptedDeployment());
  answerSlowly(deployment, random);
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    TRIBUTARY_LEASE_SECONDS: String(leaseSeconds),
    TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
  };
  const keys = await makeKeys(environment);
  const path = join(folder, "ledger.sqlite");
  const all: Seen[] = [];
  const late = new Set<string>();
  const problems: string[] = [];
  let leftOpen = 0;
  for (let round = 0; round < rounds; round += 1) {
    const set = round % accountSets;
    const killed = await killedRound(folder, environment, {
      keys: keys.slice(set * accountsPerSet, (set + 1) * accountsPerSet),
      afterAnswers: 1 + Math.floor(random() * 60),
      // Half of the kills come with the answer itself, when what it says is youngest.
      afterMs: Math.max(random() * 20 - 10, 0),
    });
    all.push(...killed.seen);
    for (const requestId of killed.late) late.add(requestId);
    problems.push(...killed.problems, ...auditProblems(path), ...unkept(path, all, late));
    leftOpen += openReservations(path);
  }
  problems.push(...(await heldAfterRecovery(folder, environment)), ...auditProblems(path));
  problems.push(...unkept(path, all, late), ...wrongBalances(path));
  await using doctor = startProgram(["doctor"], folder, environment);
  return {
    kills: rounds,
    admitted: all.length,
    settled: all.filter(({ usage }) => usage !== null).length,
    late: late.size,
    leftOpen,
    doctor: await doctor.exited,
    problems,
  };
}

type Environment = Readonly<Record<string, string>>;

async function makeKeys(environment: Environment): Promise<readonly string[]> {
  await using ledger = await openOperatorLedger(configOf(environment));
  const keys: string[] = [];
  for (let index = 0; index < accountSets * accountsPerSet; index += 1) {
    const account = await ledger.createAccount(`account ${String(index)}`, credit);
    keys.push((await ledger.createKey(account.id, "key")).secret);
  }
  return keys;
}

/** Answers of 3 to 22 pieces, a few milliseconds between them, every one with its own usage. */
function answerSlowly(deployment: ScriptedDeployment, random: () => number): void {
  for (let length = 3; length < 23; length += 1) {
    const pause = {
      type: "wait",
      get until() {
        // Real time: the service that is killed is a process, and its streams last a while.
        return sleep(1 + random() * 12);
      },
    } as const;
    const pieces = Array.from({ length }, (_, index) => [
      delta({ content: `${String(index)} ` }),
      pause,
    ]);
    const usage = { promptTokens: 10 + length, completionTokens: length };
    deployment.answerFor(
      `length-${String(length)}.`,
      pause,
      ...pieces.flat(),
      finish("stop", usage),
    );
  }
}

interface KilledRound {
  readonly seen: readonly Seen[];
  readonly late: readonly string[];
  readonly problems: readonly string[];
}

async function killedRound(
  folder: string,
  environment: Environment,
  parts: {
    readonly keys: readonly string[];
    readonly afterAnswers: number;
    readonly afterMs: number;
  },
): Promise<KilledRound> {
  await using program = startProgram(["serve", "--json"], folder, environment);
  const [, url = ""] = await program.waitFor(/"url":"(http:[^"]+)"/);
  const seen: Seen[] = [];
  const enough = Promise.withResolvers<void>();
  let answers = 0;
  const count = (): void => {
    answers += 1;
    if (answers >= parts.afterAnswers) enough.resolve();
  };
  const over = new AbortController();
  const clients = Array.from({ length: streamsAtOnce }, async (_, index) => {
    const key = parts.keys[index % parts.keys.length] ?? "";
    for (let turn = index; !over.signal.aborted; turn += 1)
      await stream(url, { key, turn, seen, count });
  });
  await Promise.race([enough.promise, program.exited]);
  // Real time: the process is to die anywhere in its work, also where it says nothing.
  if (parts.afterMs > 0) await sleep(parts.afterMs);
  program.signal("SIGKILL");
  over.abort();
  await program.exited;
  await Promise.all(clients);
  const late = [...program.stdout().matchAll(/"requestId":"(req_\w+)"[^\n]*"settlement late"/g)];
  const byItself = program.stderr() === "" ? [] : [`the service said: ${program.stderr()}`];
  return { seen, late: late.map(([, requestId = ""]) => requestId), problems: byItself };
}

/** One stream, read until its end or until the service is gone. */
async function stream(
  url: string,
  parts: {
    readonly key: string;
    readonly turn: number;
    readonly seen: Seen[];
    readonly count: () => void;
  },
): Promise<void> {
  const { turn } = parts;
  const format = formats[turn % formats.length] ?? formats[0];
  const text = JSON.stringify(format.body).replace(
    "Hi",
    `length-${String(3 + ((turn * 7) % 20))}.`,
  );
  const options =
    format.name === "chat-completions" ? ',"stream_options":{"include_usage":true}' : "";
  try {
    const body = `${text.slice(0, -1)},"stream":true${options}}`;
    const response = await post(url + format.path, body, { key: parts.key });
    const allowance = response.headers.get("x-tributary-output-allowance");
    if (response.status !== 200 || allowance === null) {
      await response.text();
      // Real time: a caller who was refused does not come back at once.
      await sleep(20);
      return;
    }
    const requestId = response.headers.get("x-request-id") ?? "";
    const one: Seen = { requestId, allowance: Number(allowance), usage: null };
    parts.seen.push(one);
    parts.count();
    one.usage = await readToEnd(response, format.name);
    if (one.usage !== null) parts.count();
  } catch {
    // The service was killed: a refused connection, or one that broke off. Real time: others have a turn before the next try.
    await sleep(5);
  }
}

const ends = {
  "chat-completions": [/\ndata: \[DONE\]\n\n/, /"prompt_tokens":(\d+),"completion_tokens":(\d+)/],
  responses: [
    /\nevent: response\.completed\ndata: .*\n\n/,
    /"usage":\{"input_tokens":(\d+),.*?"output_tokens":(\d+)/,
  ],
  messages: [
    /\nevent: message_stop\ndata: .*\n\n/,
    /event: message_delta\n.*"input_tokens":(\d+),"output_tokens":(\d+)/,
  ],
} as const;

/** Usage once the end has come, also when the connection broke after it. */
async function readToEnd(
  response: Response,
  format: keyof typeof ends,
): Promise<readonly [number, number] | null> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true });
  } catch {
    // What was read before it broke counts.
  }
  const [end, usage] = ends[format];
  if (!end.test(text)) return null;
  const found = usage.exec(text);
  if (found === null) throw new Error(`no usage in ${text.slice(-500)}`);
  return [Number(found[1]), Number(found[2])];
}

/** Every answer that was seen must be in the file, with its numbers. */
function unkept(path: string, all: readonly Seen[], late: ReadonlySet<string>): readonly string[] {
  using database = new DatabaseSync(path, { readOnly: true, readBigInts: true });
  const find = database.prepare("select * from reservation where request_id = ?");
  const { prices } = configOf({});
  return all.flatMap(({ requestId, allowance, usage }) => {
    const row = find.get(requestId);
    if (row === undefined) return [`${requestId} was admitted and is not there`];
    if (row["allowance"] !== BigInt(allowance)) return [`${requestId} has another allowance`];
    if (usage === null || late.has(requestId)) return [];
    const charge = costNanos(usage[0], usage[1], prices);
    if (row["state"] === "settled" && row["charged_nanos"] === charge) return [];
    const is = `${String(row["state"])} ${String(row["outcome"])} ${String(row["charged_nanos"])}`;
    return [`${requestId} was settled for ${String(charge)} and is ${is}`];
  });
}

function openReservations(path: string): number {
  using database = new DatabaseSync(path, { readOnly: true });
  const open = "select count(*) as count from reservation where state = 'open'";
  return Number(database.prepare(open).get()?.["count"]);
}

/** What each account should have left, from its receipts alone. */
function wrongBalances(path: string): readonly string[] {
  using database = new DatabaseSync(path, { readOnly: true, readBigInts: true });
  return database
    .prepare(
      `select account.id, balance_nanos, coalesce(sum(charged_nanos), 0) as spent
       from account left join reservation on account_id = account.id
       where account.name like 'account %' group by account.id`,
    )
    .all()
    .filter((row) => BigInt(String(row["balance_nanos"])) !== credit - BigInt(String(row["spent"])))
    .map((row) => `${String(row["id"])} does not have what its receipts leave it`);
}

/** A service that is left alone for a lease gives back what the dead ones held. */
async function heldAfterRecovery(
  folder: string,
  environment: Environment,
): Promise<readonly string[]> {
  await using program = startProgram(["serve", "--json"], folder, environment);
  await program.waitFor(/"event":"listening"/);
  await using ledger = await openOperatorLedger(configOf(environment));
  let held: readonly string[] = [];
  for (let tries = 0; tries < 1_000; tries += 1) {
    const accounts = await ledger.listAccounts();
    held = accounts
      .filter(({ heldNanos }) => heldNanos !== 0n)
      .map(({ id, heldNanos }) => `${id} still holds ${formatCredit(heldNanos)}`);
    if (held.length === 0) break;
    // Real time: the process that gives back is another.
    await sleep(100);
  }
  program.signal("SIGTERM");
  const code = await program.exited;
  return code === 0 ? held : [...held, `it ended with ${String(code)}: ${program.stderr()}`];
}
