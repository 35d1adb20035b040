import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Program, startLivingProgram } from "../cli/start-program.ts";
import { startScriptedDeployment, textAnswer } from "../doubles/scripted-deployment.ts";
import { postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { configOf, formats, post } from "../service/start-service.ts";
import { isOldestThere, unpackOldest } from "./oldest-version.ts";

// The oldest version that may still open what this one leaves runs beside it, on one ledger.

const [chat] = formats;

async function runBesideEachOther(database: Readonly<Record<string, string>>): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-older-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  deployment.answerAlways(...textAnswer("Hello"));
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    ...database,
  };
  // This version makes the ledger, so that its schema is the newest.
  const ledger = opened.use(await openOperatorLedger(configOf(environment)));
  const { id } = await ledger.createAccount("a", 10n ** 12n);
  const { secret: key } = await ledger.createKey(id, "a");
  const start = (main: { readonly main?: string }): Program =>
    opened.use(
      startLivingProgram({
        words: ["serve", "--json"],
        folder,
        environment,
        lifeMs: 60_000,
        ...main,
      }),
    );
  const services = [start({ main: await unpackOldest(folder) }), start({})];
  const urls = await Promise.all(
    services.map(async (service) => {
      const [, url = ""] = await service.waitFor(/"url":"(http:[^"]+)"[^\n]*"event":"listening"/);
      return url + chat.path;
    }),
  );
  const requests = Array.from({ length: 40 }, (_, index) => urls[index % 2] ?? "");
  for (const url of requests) {
    const answer = await post(url, chat.body, { key });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("Hello")]);
  }
  const account = await ledger.showAccount(id);
  expect(account.heldNanos).toBe(0n);
  const [sum] = await ledger.sumUsage({
    accountId: id,
    keyId: null,
    format: null,
    sinceMs: null,
    untilMs: null,
    by: ["format"],
    timezone: "UTC",
  });
  expect(sum?.sums.requests).toBe(40);
  expect(account.balanceNanos + (sum?.sums.chargedNanos ?? 0n)).toBe(10n ** 12n);
  expect((await ledger.verify([])).problems).toEqual([]);
}

it.runIf(isOldestThere)(
  "the oldest version that reads this schema runs beside this one, on SQLite",
  () => runBesideEachOther({}),
);

it.runIf(isOldestThere && postgresTests)("and on PostgreSQL", async () => {
  await using server = await startPostgres();
  await runBesideEachOther({ TRIBUTARY_DATABASE_URL: await server.createDatabase("older") });
});
