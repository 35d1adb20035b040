import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { type Program, startLivingProgram } from "../cli/start-program.ts";
import { openRandom } from "../doubles/random.ts";
import { startScriptedDeployment } from "../doubles/scripted-deployment.ts";
import { postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { openOperatorsAnswerCheck } from "../operators/check-operator-answer.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { configOf } from "../service/start-service.ts";
import { inspectWith } from "../wire/watch-answers.ts";

inspectWith(openOperatorsAnswerCheck);

// Top-ups, each sent five times at once under one idempotency key, while the two services that take them are killed.

const topUps = 100;
const timesEach = 5;
const atOnce = 10;
const answersBetweenKills = 60;

/** A service that is killed and started again. */
interface Mortal {
  url: Promise<string>;
  program: Program;
}

async function creditThroughKills(database: Readonly<Record<string, string>>): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-top-ups-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_OPERATOR_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    ...database,
  };
  const ledger = opened.use(await openOperatorLedger(configOf(environment)));
  const { id } = await ledger.createAccount("shop", 0n);
  const operator = { name: "shop", role: "billing", expiresAtMs: null } as const;
  const { secret: token } = await ledger.createOperator(operator);
  const random = openRandom(20_261_122);

  const start = (): Mortal => {
    const words = ["serve", "--json"];
    const program = opened.use(startLivingProgram({ words, folder, environment, lifeMs: 250_000 }));
    const found = program.waitFor(/"address":"(http:[^"]+)"[^\n]*"event":"operators listening"/);
    // One that was killed before it listened has no address; the next in its place has.
    const url = found.then(([, address = ""]) => address).catch(() => "");
    return { program, url };
  };
  const services = [start(), start()];
  let answers = 0;
  let kills = 0;

  /** The next kill comes while others of these answers are under way. */
  async function count(): Promise<void> {
    answers += 1;
    if (answers % answersBetweenKills !== 0) return;
    const at = kills % services.length;
    kills += 1;
    await sleep(random() * 5);
    services[at]?.program.signal("SIGKILL");
    services[at] = start();
  }

  async function send(topUp: number, time: number): Promise<string> {
    for (let tries = 0; ; tries += 1) {
      const service = services[(time + tries) % services.length];
      try {
        const answer = await fetch(`${await service?.url}/api/v1/accounts/${id}/credits`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${token}`,
            "content-type": "application/json",
            "idempotency-key": `payment-${String(topUp)}`,
          },
          body: JSON.stringify({ amount: "0.01", note: `payment ${String(topUp)}` }),
        });
        const body = (await answer.json()) as { entry?: { hash: string }; code?: string };
        await count();
        if (answer.status === 200) return body.entry?.hash ?? "";
        expect([409, 503]).toContain(answer.status);
        if (answer.status === 409) expect(body.code).toBe("idempotency_in_progress");
      } catch (error) {
        if (!(error instanceof TypeError) && !(error instanceof SyntaxError)) throw error;
      }
      await sleep(20 + random() * 60);
    }
  }

  const left = Array.from({ length: topUps }, (_, topUp) => topUp);
  const hashes: string[] = [];
  const work = async (): Promise<void> => {
    for (let topUp = left.shift(); topUp !== undefined; topUp = left.shift()) {
      const number = topUp;
      const same = await Promise.all(
        Array.from({ length: timesEach }, (_, time) => send(number, time)),
      );
      expect(new Set(same).size, `payment ${String(number)} was answered with one entry`).toBe(1);
      hashes.push(...new Set(same));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));

  expect(kills).toBeGreaterThan(5);
  expect(new Set(hashes).size).toBe(topUps);
  expect((await ledger.showAccount(id)).balanceNanos).toBe(BigInt(topUps) * 10_000_000n);
  const entries = await ledger.pageEntries({ accountId: id, before: null, rowsMax: 1_000 });
  expect(entries).toHaveLength(topUps);
  expect(new Set(entries.map(({ note }) => note))).toEqual(
    new Set(Array.from({ length: topUps }, (_, at) => `payment ${String(at)}`)),
  );
  expect((await ledger.verify([])).problems).toEqual([]);
}

it("100 top-ups sent five times at once while services are killed are credited once, on SQLite", () =>
  creditThroughKills({}));

it.runIf(postgresTests)("and on PostgreSQL", async () => {
  await using server = await startPostgres();
  await creditThroughKills({ TRIBUTARY_DATABASE_URL: await server.createDatabase("topups") });
});
