import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { describe, expect, it } from "vitest";
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
import { configOf, formats, post } from "../service/start-service.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { ask, longWord, startLoad } from "./load.ts";
import { findNginx, type Nginx, startNginx } from "./nginx.ts";
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

/** Three replicas on one database behind nginx, and what they need. */
interface Fleet extends AsyncDisposable {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly database: string;
  readonly deployment: ScriptedDeployment;
  readonly replicas: Replica[];
  readonly nginx: Nginx;
}

async function startFleet(
  name: string,
  settings: Readonly<Record<string, string>>,
): Promise<Fleet> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-rolling-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const server = opened.use(await startPostgres());
  const deployment = opened.use(await startScriptedDeployment());
  answerBoth(deployment);
  const database = await server.createDatabase(name);
  const environment = {
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DATABASE_URL: database,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
    TRIBUTARY_DRAIN_DELAY_SECONDS: "1",
    TRIBUTARY_DRAIN_LISTENER: "closed",
    ...settings,
  };
  const replicas: Replica[] = [];
  opened.defer(async () => {
    for (const { program } of replicas) await program[Symbol.asyncDispose]();
  });
  for (let index = 0; index < 3; index += 1) replicas.push(await startReplica(folder, environment));
  const nginx = opened.use(await startNginx(replicas.map(({ port }) => port)));
  const owned = opened.move();
  return {
    folder,
    environment,
    database,
    deployment,
    replicas,
    nginx,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
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

const able = postgresTests && findNginx() !== null;

describe.skipIf(!able)("three replicas behind nginx", () => {
  it("are restarted one after the other, and no request fails or is charged twice", async () => {
    await using fleet = await startFleet("rolling", { TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100" });
    const { database, deployment, environment, folder, nginx, replicas } = fleet;
    const keys = await makeKeys(environment, 10);
    const load = startLoad({
      socketPath: nginx.socketPath,
      keys,
      requestsPerSecond: 50,
      streams: 30,
    });
    for (const [index, replica] of replicas.entries()) {
      const { port, program } = replica;
      await until(async () => (await answered(replica)) > 20);
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
  });

  it("lose one by kill -9: its own streams end, and its accounts are served again within 3 s", async () => {
    await using fleet = await startFleet("killed", { TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "4" });
    const { environment, folder, nginx, replicas } = fleet;
    const [full = "", other = ""] = await makeKeys(environment, 2);
    const [victim, survivor] = replicas;
    if (victim === undefined || survivor === undefined) throw new Error("there are no replicas");
    const [chat] = formats;
    const long = { messages: [{ role: "user", content: longWord }], stream: true };
    const stream = (replica: Replica, key: string): Promise<Response> =>
      post(`http://127.0.0.1:${String(replica.port)}${chat.path}`, long, { key });
    const lost = await Promise.all([1, 2, 3, 4].map(() => stream(victim, full)));
    const kept = await Promise.all([1, 2].map(() => stream(survivor, other)));
    expect([...lost, ...kept].map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    const agent = new Agent({ connect: { socketPath: nginx.socketPath } });
    const again = (): Promise<string | null> => ask(agent, { index: 0, key: full, long: false });
    expect(await again()).toMatch(/: 429 .*concurrency_limit_exceeded/);

    victim.program.signal("SIGKILL");
    const killedAtMs = performance.now();
    for (const answer of lost) await expect(answer.text()).rejects.toThrow("terminated");
    const refusals: string[] = [];
    for (let refusal = await again(); refusal !== null; refusal = await again()) {
      refusals.push(refusal);
      expect(performance.now() - killedAtMs, refusal).toBeLessThan(20_000);
      await sleep(20);
    }
    const servedAfterMs = Math.round(performance.now() - killedAtMs);
    for (const answer of kept) expect(await answer.text()).toContain("data: [DONE]\n\n");
    // What is refused meanwhile is refused for its reason; none is lost between nginx and the dead replica.
    const otherwise = refusals.filter((refusal) => !refusal.includes("concurrency_limit_exceeded"));
    expect(otherwise).toEqual([]);
    expect(servedAfterMs).toBeLessThan(3_000);
    await agent.close();
    await using verify = startProgram(["verify"], folder, environment);
    expect(await verify.exited, verify.stdout() + verify.stderr()).toBe(0);
    console.log(JSON.stringify({ servedAfterMs, refusals: refusals.length }));
  });
});
