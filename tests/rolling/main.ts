import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startProgram } from "../cli/start-program.ts";
import { configOf } from "../service/start-service.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { unpackOldest } from "../slow/oldest-version.ts";
import { chargeNanos, makeKeys, rowsOf, startFleet, startingNanos } from "./fleet.ts";
import { type LoadReport, startLoad } from "./load.ts";
import { answered, type Replica, startReplica, until } from "./replicas.ts";
import { type SdkReport, startSdkLoad } from "./sdk-load.ts";

// npm run rolling -- --times 10: three replicas behind nginx are restarted one after the other under 64 streams and 50 new
// requests a second, in one round to the oldest version that the schema names, in the next one back. With --kill a replica
// is killed in each round instead. The last line sums up; the exit code says whether all was as it has to be.

const { values } = parseArgs({
  options: {
    times: { type: "string", default: "10" },
    kill: { type: "boolean", default: false },
    store: { type: "string", default: "postgres" },
  },
});
const { kill, store } = values;
if (store !== "postgres" && store !== "sqlite") throw new Error("--store is postgres or sqlite");
const times = Number(values.times);
if (!(times >= 1)) throw new Error("--times is a whole number from 1 on");
/** After a death the credit that a process held is to be back within this. */
const givenBackMs = 3_000;

const problems: string[] = [];
await using opened = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), "tributary-oldest-"));
opened.defer(() => rm(folder, { recursive: true, force: true }));
const oldest = kill ? undefined : await unpackOldest(folder);
const fleet = opened.use(
  await startFleet({
    name: "rolling",
    store,
    settings: { TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100" },
  }),
);
const { environment, nginx, replicas } = fleet;
const keys = await makeKeys(environment, 10);
const load = startLoad({
  socketPath: nginx.socketPath,
  keys,
  requestsPerSecond: 50,
  streams: 64,
});
const sdks = startSdkLoad({ socketPath: nginx.socketPath, keys: keys.slice(0, 2) });
/** Replicas that were killed, and how many requests had failed before. */
const victims: { readonly address: string; readonly failedBefore: number }[] = [];
const startedAtMs = performance.now();
for (let round = 1; round <= times; round += 1) {
  // The middle one, so that what comes after it is served on what it has left.
  const isOld = !kill && round === Math.ceil(times / 2) && round < times;
  const said = kill ? await killOne((round - 1) % 3) : await restartAll(isOld ? oldest : undefined);
  const { done, failures, sent } = load.report;
  const sums = { sent, done: done.length, failed: failures.length };
  console.log(JSON.stringify({ round, ...said, ...(isOld && { to: "oldest" }), ...sums }));
}
for (const replica of replicas) await until(async () => (await answered(replica)) > 20);
const sentASecond = Math.round((load.report.sent / (performance.now() - startedAtMs)) * 1_000);
const [report, sdkReport] = await Promise.all([load.stop(), sdks.stop()]);
checkFailures(report, sdkReport);
await checkBooks(report, sdkReport);
for (const problem of problems.slice(0, 5)) console.log(problem);
if (problems.length > 0) console.log(digestOf(await nginx.errors()));
const { calls, repeated } = sdkReport;
const sums = { rounds: times, sent: report.sent, sentASecond, cut: report.failures.length };
console.log(
  JSON.stringify({ store, kill, ...sums, sdks: { calls, repeated }, problems: problems.length }),
);
process.exitCode = problems.length === 0 ? 0 : 1;

async function restartAll(main: string | undefined): Promise<object> {
  const beganAtMs = performance.now();
  for (const [index, replica] of replicas.entries()) {
    const { port, program } = replica;
    await until(async () => (await answered(replica)) > 20);
    program.signal("SIGTERM");
    const code = await program.exited;
    const stderr = program.stderr();
    if (code !== 0 || stderr !== "")
      problems.push(`a replica ended with ${String(code)}: ${stderr}`);
    replicas[index] = await startReplica({
      folder: fleet.folder,
      environment,
      port,
      ...(main !== undefined && { main }),
    });
  }
  return { seconds: Math.round((performance.now() - beganAtMs) / 1_000) };
}

/** Kills one under load, and waits until what it held is given back. */
async function killOne(index: number): Promise<object> {
  const replica = replicas[index];
  if (replica === undefined) throw new Error("there is no such replica");
  // The proxy asks a replica that was away only some seconds later again; without it there would be one replica left.
  for (const one of replicas) await until(async () => (await answered(one)) > 20);
  const address = `127.0.0.1:${String(replica.port)}`;
  const failedBefore = load.report.failures.length;
  replica.program.signal("SIGKILL");
  await replica.program.exited;
  const killedAtMs = performance.now();
  victims.push({ address, failedBefore });
  const owner = await ownerOf(address, failedBefore);
  await until(async () => (await openOf(owner)) === 0);
  const tookMs = Math.round(performance.now() - killedAtMs);
  if (tookMs > givenBackMs)
    problems.push(`what a killed replica held came back after ${String(tookMs)} ms`);
  replicas[index] = await restart(replica);
  return { givenBackMs: tookMs, cut: load.report.failures.length - failedBefore };
}

async function restart({ port }: Replica): Promise<Replica> {
  return startReplica({ folder: fleet.folder, environment, port });
}

/** The name in the ledger of the process whose answers were cut: that of the reservations behind them. */
async function ownerOf(address: string, failedBefore: number): Promise<string> {
  const found = new Set<string>();
  await until(async () => {
    const ids = load.report.failures
      .slice(failedBefore)
      .filter(({ replica, requestId }) => replica === address && requestId !== null)
      .map(({ requestId }) => `'${String(requestId)}'`);
    if (ids.length === 0) return false;
    const rows = await rowsOf(
      fleet,
      `select distinct owner from tributary.reservation where request_id in (${ids.join()}) and owner is not null`,
    );
    for (const { owner } of rows) found.add(String(owner));
    return found.size > 0;
  });
  const [owner = ""] = found;
  if (found.size !== 1) problems.push(`answers of ${String(found.size)} processes were cut`);
  return owner;
}

async function openOf(owner: string): Promise<number> {
  const [row] = await rowsOf(
    fleet,
    `select count(*) as open from tributary.reservation where state = 'open' and owner = '${owner}'`,
  );
  return Number(row?.["open"]);
}

/** Of restarts nothing fails. Of a kill what ran there, in a way that an SDK repeats: 502 of the proxy, or a lost connection. */
function checkFailures({ failures }: LoadReport, sdk: SdkReport): void {
  for (const [index, one] of failures.entries()) {
    const isCut =
      one.status === 502 || (one.status === 200 && /terminated|aborted|closed/.test(one.failure));
    const victim = victims.findLast(({ failedBefore }) => failedBefore <= index);
    if (!isCut || victim?.address !== one.replica) problems.push(JSON.stringify(one));
  }
  for (const failure of sdk.failures) problems.push(`an SDK's caller got ${failure}`);
  if (kill && (failures.length === 0 || sdk.repeated === 0)) problems.push("nothing was cut");
  if (!kill && sdk.repeated > 0) problems.push(`SDKs repeated ${String(sdk.repeated)} requests`);
}

/** Each answer that came was charged once, each that was cut never or once, and nothing else. */
async function checkBooks({ done, failures, sent }: LoadReport, sdk: SdkReport): Promise<void> {
  const rows = await rowsOf(
    fleet,
    `select request_id, account_id, state, outcome, cast(charged_nanos as text) as charged from tributary.reservation`,
  );
  const charges = new Map<string, bigint>();
  const charged = new Set<string>();
  for (const { account_id, charged: nanos, outcome, request_id, state } of rows) {
    const isCharged =
      state === "settled" && outcome === "completed" && nanos === String(chargeNanos);
    const isGivenBack = kill && state === "expired" && nanos === "0";
    if (!isCharged && !isGivenBack)
      problems.push(`${String(request_id)}: ${String(state)} ${String(outcome)} ${String(nanos)}`);
    if (!isCharged) continue;
    charged.add(String(request_id));
    charges.set(String(account_id), (charges.get(String(account_id)) ?? 0n) + chargeNanos);
  }
  for (const id of done) if (!charged.has(id)) problems.push(`${id} was answered and not charged`);
  if (new Set(done).size !== done.length) problems.push("two answers have one id");
  const most = sent + sdk.calls + sdk.repeated;
  if (kill ? charged.size > most : charged.size !== sent + sdk.calls || rows.length !== most)
    problems.push(
      `${String(most)} requests, ${String(rows.length)} reservations, ${String(charged.size)} charges`,
    );
  if (kill && done.length + failures.length !== sent) problems.push("not every request has an end");
  await using ledger = await openOperatorLedger(configOf(environment));
  for (const account of await ledger.listAccounts()) {
    const { balanceNanos, heldNanos, id } = account;
    if (heldNanos !== 0n || balanceNanos !== startingNanos - (charges.get(id) ?? 0n))
      problems.push(`${id} has ${String(balanceNanos)}, holds ${String(heldNanos)}`);
  }
  await using verify = startProgram(["verify"], fleet.folder, environment);
  if ((await verify.exited) !== 0) problems.push(verify.stdout() + verify.stderr());
}

/** How often the proxy wrote each of its errors within a second. */
function digestOf(errors: string): string {
  const counts = new Map<string, number>();
  for (const line of errors.trim().split("\n")) {
    const [, time, words] = /^\S+ (\S+) .*?\*\d+ (.*?), client:/.exec(line) ?? [];
    const [, upstream = ""] = /upstream: "[a-z]+:\/\/([^/"]+)/.exec(line) ?? [];
    const name = `${String(time)} ${upstream} ${String(words)}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${String(count)} ${name}`).join("\n");
}
