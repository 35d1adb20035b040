import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import { startProgram } from "../cli/start-program.ts";
import {
  delta,
  finish,
  type ScriptedDeployment,
  startScriptedDeployment,
  textAnswer,
} from "../doubles/scripted-deployment.ts";
import { execute, postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { configOf, openOperatorLedger } from "../service/start-service.ts";
import { longWord, startLoad } from "./load.ts";
import { findNginx, startNginx } from "./nginx.ts";
import { answered, type Replica, startReplica, until } from "./replicas.ts";

const usage = { promptTokens: 12, completionTokens: 7 };
const piecesOfLong = 25;

/** Short answers at once, long ones in 2.5 seconds. */
function answerBoth(deployment: ScriptedDeployment): void {
  const pause = {
    type: "wait",
    get until() {
      return sleep(100);
    },
  } as const;
  const pieces = Array.from({ length: piecesOfLong }, (_, index) => [
    delta({ content: `${String(index)} ` }),
    pause,
  ]);
  const long = [...pieces.flat(), finish("stop", usage)];
  const short = textAnswer("Hello.", { usage });
  deployment.answerBy((asked) => (asked.body.includes(longWord) ? long : short));
}

async function makeKeys(
  environment: Readonly<Record<string, string>>,
  count: number,
): Promise<readonly string[]> {
  await using ledger = await openOperatorLedger(configOf(environment));
  const keys: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const account = await ledger.createAccount(`account ${String(index)}`, 10n ** 12n);
    keys.push((await ledger.createKey(account.id, "key")).secret);
  }
  return keys;
}

it.skipIf(!postgresTests || findNginx() === null)(
  "three replicas behind nginx are restarted one after the other, and no request fails or is charged twice",
  async () => {
    await using opened = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), "tributary-rolling-"));
    opened.defer(() => rm(folder, { recursive: true, force: true }));
    const server = opened.use(await startPostgres());
    const deployment = opened.use(await startScriptedDeployment());
    answerBoth(deployment);
    const database = await server.createDatabase("rolling");
    const environment = {
      TRIBUTARY_DATA_DIR: folder,
      TRIBUTARY_DATABASE_URL: database,
      TRIBUTARY_DEPLOYMENT_URL: deployment.url,
      TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100",
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      TRIBUTARY_DRAIN_DELAY_SECONDS: "1",
      TRIBUTARY_DRAIN_LISTENER: "closed",
    };
    const keys = await makeKeys(environment, 10);
    const replicas: Replica[] = [];
    opened.defer(async () => {
      for (const { program } of replicas) await program[Symbol.asyncDispose]();
    });
    for (let index = 0; index < 3; index += 1)
      replicas.push(await startReplica(folder, environment));
    const nginx = opened.use(await startNginx(replicas.map(({ port }) => port)));
    const load = startLoad({
      socketPath: nginx.socketPath,
      keys,
      requestsPerSecond: 50,
      streams: 30,
    });
    for (const [index, { port, program }] of replicas.entries()) {
      await until(async () => (await answered(replicas[index] ?? { port, program })) > 20);
      program.signal("SIGTERM");
      expect(await program.exited).toBe(0);
      expect(program.stderr()).toBe("");
      replicas[index] = await startReplica(folder, environment, port);
    }
    for (const replica of replicas) await until(async () => (await answered(replica)) > 20);
    const report = await load.stop();
    expect(report.failures, await nginx.errors()).toEqual([]);
    expect(report.done).toBe(report.sent);
    expect(report.done).toBeGreaterThan(300);

    // Each ran once at the deployment, and was charged once.
    expect(deployment.requests).toHaveLength(report.done);
    const charge = costNanos(usage.promptTokens, usage.completionTokens, configOf({}).prices);
    expect(
      await execute(
        database,
        `select state, outcome, count(*)::int as count, min(charged_nanos)::text as least,
           max(charged_nanos)::text as most from tributary.reservation group by state, outcome`,
      ),
    ).toEqual([
      {
        state: "settled",
        outcome: "completed",
        count: report.done,
        least: String(charge),
        most: String(charge),
      },
    ]);
    await using verify = startProgram(["verify"], folder, environment);
    expect(await verify.exited, verify.stdout() + verify.stderr()).toBe(0);
    console.log(JSON.stringify({ sent: report.sent, done: report.done }));
  },
);
