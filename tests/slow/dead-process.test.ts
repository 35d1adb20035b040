import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { startProgram } from "../cli/start-program.ts";
import { delta, openGate, startScriptedDeployment } from "../doubles/scripted-deployment.ts";
import { postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { configOf, formats, post } from "../service/start-service.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";

const [chat] = formats;

/** Milliseconds from the kill of a service with four streams of an account until another one serves it again. */
async function freedAfterMs(database: Readonly<Record<string, string>>): Promise<number> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-dead-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  const gate = openGate();
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    ...database,
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
  return performance.now() - killedAtMs;
}

// 3 s on a machine that has time for it (limits.ledgerDeadFreedMs); on any, long before the lease of a minute.
const freedMs = 15_000;

it("serves the account of a killed service again long before its leases end, on SQLite", async () => {
  const tookMs = await freedAfterMs({});
  console.log(JSON.stringify({ tookMs: Math.round(tookMs) }));
  expect(tookMs).toBeLessThan(freedMs);
});

it.runIf(postgresTests)("and on PostgreSQL", async () => {
  await using server = await startPostgres();
  const url = await server.createDatabase("dead");
  const tookMs = await freedAfterMs({ TRIBUTARY_DATABASE_URL: url });
  console.log(JSON.stringify({ tookMs: Math.round(tookMs) }));
  expect(tookMs).toBeLessThan(freedMs);
});
