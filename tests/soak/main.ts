import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { parseCredit } from "../../src/admission/price.ts";
import { configOf } from "../service/start-service.ts";
import { execute, type PostgresServer, startPostgres } from "../ledger/postgres-server.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openRandom } from "../doubles/random.ts";
import { makeReplica, type Replica } from "./replica.ts";
import { type Outcome, runRequest, type SoakAccount } from "./soak-client.ts";
import { startSoakDeployment } from "./soak-deployment.ts";
import { takeWireProblems } from "../wire/watch-answers.ts";

// Three replicas of the whole service on one PostgreSQL, under a mixed load, with faults: one is killed, one frozen past
// its leases, the database crashes. At the end the ledger verifies, and every account has what an independent count of
// the load generator leaves it, to 1e-9 credit.

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "600" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
/** A third of the accounts runs out of credit on the way. */
const credits = ["2", "2", "0.02"] as const;
const leaseSeconds = 4;
const accountCount = 12;
const clientCount = 24;

await using opened = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), "tributary-soak-"));
opened.defer(() => rm(folder, { recursive: true, force: true }));
const postgres = opened.use(await startPostgres());
const database = await postgres.createDatabase("soak");
const deployment = opened.use(await startSoakDeployment());
const environment = {
  TRIBUTARY_PORT: "0",
  TRIBUTARY_DATA_DIR: folder,
  TRIBUTARY_DATABASE_URL: database,
  TRIBUTARY_DEPLOYMENT_URL: deployment.url,
  TRIBUTARY_LEASE_SECONDS: String(leaseSeconds),
  TRIBUTARY_LOG_LEVEL: "info",
};
const config = configOf(environment);
const replicas = [0, 1, 2].map(() => opened.use(makeReplica(folder, environment)));
// All at once: the migrations of a new database are run by one of them.
await Promise.all(replicas.map((replica) => replica.start()));
const accounts = await makeAccounts();
let disturbances = 0;

process.stdout.write(`soak of ${String(seconds)} s, seed ${String(seed)}\n`);
const endAtMs = performance.now() + seconds * 1_000;
const [outcomes] = await Promise.all([load(), disturb()]);
await settleDown();
const problems = [
  ...(await findProblems(outcomes)),
  ...(await stopReplicas()),
  ...takeWireProblems(),
];
report(outcomes, problems);
process.exitCode = problems.length === 0 ? 0 : 1;

async function makeAccounts(): Promise<readonly SoakAccount[]> {
  await using ledger = await openOperatorLedger();
  const made: SoakAccount[] = [];
  for (let index = 0; index < accountCount; index += 1) {
    const creditNanos = parseCredit(credits[index % credits.length] ?? "") ?? 0n;
    const { id } = await ledger.createAccount(`soak ${String(index)}`, creditNanos);
    made.push({ accountId: id, creditNanos, key: (await ledger.createKey(id, "soak")).secret });
  }
  return made;
}

function openOperatorLedger(): ReturnType<typeof openPostgresLedger> {
  return openPostgresLedger(
    {
      url: database,
      prices: config.prices,
      concurrencyPerAccount: config.concurrencyPerAccount,
      requestsPerMinute: config.requestsPerMinute,
      leaseMs: config.leaseSeconds * 1_000,
    },
    { now: Date.now },
  );
}

async function load(): Promise<readonly Outcome[]> {
  const all: Outcome[] = [];
  await Promise.all(
    Array.from({ length: clientCount }, async (_, client) => {
      const next = openRandom(seed * 1_000 + client);
      while (performance.now() < endAtMs) {
        const account = accounts[Math.floor(next() * accounts.length)];
        const replica = replicas[Math.floor(next() * replicas.length)];
        if (account === undefined || replica === undefined) throw new Error("nothing to draw from");
        const outcome = await runRequest({
          next,
          account,
          replica,
          disturbances: () => disturbances,
          prices: config.prices,
        });
        all.push(outcome);
        // Refusals are cheap; without a pause they would be all that the load consists of.
        if (outcome.status !== 200) await sleep(20);
      }
    }),
  );
  return all;
}

/** The faults, spread over the run, again and again in a long one. */
async function disturb(): Promise<void> {
  const steps = [killOne, freezeOne, crashDatabase];
  const everyMs = Math.min((seconds * 1_000) / 4, 60_000);
  for (let step = 0; performance.now() + everyMs + 15_000 < endAtMs + 15_000; step += 1) {
    const waitMs = Math.min(everyMs, endAtMs - performance.now());
    await sleep(Math.max(waitMs, 0));
    if (performance.now() >= endAtMs) return;
    await steps[step % steps.length]?.(replicas[step % replicas.length]);
  }
}

async function killOne(replica: Replica | undefined): Promise<void> {
  if (replica === undefined) return;
  await replica.kill();
  await sleep(1_000);
  await replica.start();
}

async function freezeOne(replica: Replica | undefined): Promise<void> {
  if (replica === undefined) return;
  replica.signal("SIGSTOP");
  await sleep((leaseSeconds + 2) * 1_000);
  replica.signal("SIGCONT");
  // What it was doing is found out only now.
  await sleep(2_000);
  replica.signal("SIGCONT");
}

async function crashDatabase(): Promise<void> {
  disturbances += 1;
  await (postgres satisfies PostgresServer).stop("crash");
  await sleep(2_000);
  await postgres.start();
  await sleep(3_000);
  disturbances += 1;
}

/** Everything is resolved a lease after the last request. */
async function settleDown(): Promise<void> {
  const untilMs = performance.now() + (leaseSeconds * 2 + 10) * 1_000;
  while (performance.now() < untilMs) {
    const rows = await execute(
      database,
      "select count(*)::int as open from tributary.reservation where state = 'open'",
    );
    if (rows[0]?.["open"] === 0) return;
    await sleep(200);
  }
}

interface Receipt {
  readonly requestId: string;
  readonly accountId: string;
  readonly charged: bigint;
  readonly ended: string;
  counted: boolean;
}

async function findProblems(all: readonly Outcome[]): Promise<readonly string[]> {
  const receipts = await execute(
    database,
    "select request_id, account_id, state, outcome, coalesce(charged_nanos, 0)::text as charged from tributary.reservation",
  );
  const charges = new Map<string, Receipt>();
  for (const row of receipts)
    charges.set(String(row["request_id"]), {
      requestId: String(row["request_id"]),
      accountId: String(row["account_id"]),
      charged: BigInt(String(row["charged"])),
      ended: `${String(row["state"])} ${String(row["outcome"])}`,
      counted: false,
    });
  const found: string[] = [];
  const spent = new Map<string, bigint>();
  const uncertainCharges = new Map<string, bigint[]>();
  for (const outcome of all) {
    const receipt = outcome.requestId === null ? undefined : charges.get(outcome.requestId);
    if (receipt !== undefined) receipt.counted = true;
    const charged = receipt?.charged ?? 0n;
    const exact = charged === outcome.expected;
    if (!exact && !(outcome.uncertain && charged === 0n))
      found.push(
        `${String(outcome.requestId)}: charged ${String(charged)}, expected ${String(outcome.expected)}, ` +
          `status ${String(outcome.status)}, receipt ${receipt?.ended ?? "none"}`,
      );
    if (outcome.requestId === null)
      uncertainCharges.set(outcome.accountId, [
        ...(uncertainCharges.get(outcome.accountId) ?? []),
        outcome.expected,
      ]);
    spent.set(
      outcome.accountId,
      (spent.get(outcome.accountId) ?? 0n) + (exact ? outcome.expected : 0n),
    );
  }
  // Requests whose client never saw a header, because their replica died: each cost nothing or what it should.
  for (const receipt of charges.values()) {
    if (receipt.counted || !accounts.some(({ accountId }) => accountId === receipt.accountId))
      continue;
    const { accountId, charged } = receipt;
    const candidates = uncertainCharges.get(accountId) ?? [];
    const at = candidates.indexOf(charged);
    if (charged !== 0n && at === -1)
      found.push(`${receipt.requestId}: nobody's request was charged ${String(charged)}`);
    if (at !== -1) candidates.splice(at, 1);
    spent.set(accountId, (spent.get(accountId) ?? 0n) + charged);
  }
  return [...found, ...(await compareBooks(spent))];
}

async function compareBooks(spent: ReadonlyMap<string, bigint>): Promise<readonly string[]> {
  await using ledger = await openOperatorLedger();
  const found: string[] = [];
  for (const { accountId, creditNanos } of accounts) {
    const account = await ledger.showAccount(accountId);
    const left = creditNanos - (spent.get(accountId) ?? 0n);
    if (account.heldNanos !== 0n)
      found.push(`${accountId} still holds ${String(account.heldNanos)}`);
    if (account.balanceNanos !== left)
      found.push(
        `${accountId} has ${String(account.balanceNanos)}, the count says ${String(left)}`,
      );
  }
  const { problems: broken } = await ledger.verify([]);
  return [...found, ...broken.map((problem) => `verify: ${JSON.stringify(problem)}`)];
}

async function stopReplicas(): Promise<readonly string[]> {
  const codes = await Promise.all(replicas.map((replica) => replica.stop()));
  return codes.flatMap((code, index) =>
    code === 0 ? [] : [`replica ${String(index)} ended with ${String(code)}`],
  );
}

function report(all: readonly Outcome[], found: readonly string[]): void {
  const byStatus = new Map<number, number>();
  for (const { status } of all) byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
  const statuses = [...byStatus].toSorted(([a], [b]) => a - b);
  process.stdout.write(
    `${String(all.length)} requests: ${statuses.map(([status, count]) => `${String(count)} x ${String(status)}`).join(", ")}; ` +
      `${String(all.filter(({ uncertain }) => uncertain).length)} uncertain\n`,
  );
  for (const problem of found.slice(0, 20)) process.stdout.write(`problem: ${problem}\n`);
  const passed = all.length === 0 || found.length > 0 ? 0 : 1;
  process.stdout.write(`${String(passed)} passed, ${String(1 - passed)} failed\n`);
}
