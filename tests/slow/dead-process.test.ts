import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { startProgram } from "../cli/start-program.ts";
import { delta, openGate, startScriptedDeployment } from "../doubles/scripted-deployment.ts";
import { execute, postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { configOf, formats, post } from "../service/start-service.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";

const [chat] = formats;

/** What became of four streams of an account whose service was killed, once another service serves that account again. */
interface Freed {
  /** From the kill on, by the clock of the test. */
  readonly tookMs: number;
  /** How long their leases would still have run when they were given back, by the ledger's clock. */
  readonly beforeTheirEndMs: number;
}

async function killOne(url: string | null): Promise<Freed> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-dead-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  const gate = openGate();
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    ...(url !== null && { TRIBUTARY_DATABASE_URL: url }),
  };
  const ledger = opened.use(await openOperatorLedger(configOf(environment)));
  const account = await ledger.createAccount("a", 10n ** 12n);
  const { secret: key } = await ledger.createKey(account.id, "a");
  const killed = opened.use(startProgram(["serve", "--json"], folder, environment));
  const other = opened.use(startProgram(["serve", "--json"], folder, environment));
  const [, killedUrl = ""] = await killed.waitFor(/"url":"(http:[^"]+)"/);
  const [, otherUrl = ""] = await other.waitFor(/"url":"(http:[^"]+)"/);
  deployment.answerAlways(delta({ content: "Hello" }), gate.step);
  const body = { ...chat.body, stream: true };
  const streams = await Promise.all(
    Array.from({ length: 4 }, () => post(killedUrl + chat.path, body, { key })),
  );
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect((await post(otherUrl + chat.path, body, { key })).status).toBe(429);
  const killedAtMs = performance.now();
  killed.signal("SIGKILL");
  for (;;) {
    const response = await post(otherUrl + chat.path, body, { key });
    await response.body?.cancel();
    if (response.status === 200) break;
    expect(response.status).toBe(429);
    await sleep(50);
  }
  const tookMs = Math.round(performance.now() - killedAtMs);
  return { tookMs, beforeTheirEndMs: await leastLeft(url, folder) };
}

const left = (table: string): string =>
  `select cast(min(lease_until_ms - resolved_at_ms) as text) as least from ${table} where state = 'expired'`;

async function leastLeft(url: string | null, folder: string): Promise<number> {
  if (url !== null)
    return Number((await execute(url, left("tributary.reservation")))[0]?.["least"]);
  using ledger = new DatabaseSync(join(folder, "ledger.sqlite"), { readOnly: true });
  return Number(ledger.prepare(left("reservation")).get()?.["least"]);
}

// How long it takes where a machine has time for it, tests with clocks of their own say: lease-keeper.test.ts.
it("serves the account of a killed service again before its leases end, on SQLite", async () => {
  const freed = await killOne(null);
  console.log(JSON.stringify(freed));
  expect(freed.beforeTheirEndMs).toBeGreaterThan(0);
});

it.runIf(postgresTests)("and on PostgreSQL", async () => {
  await using server = await startPostgres();
  const url = await server.createDatabase("dead");
  const freed = await killOne(url);
  console.log(JSON.stringify(freed));
  expect(freed.beforeTheirEndMs).toBeGreaterThan(0);
});
