import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { describe, expect, it } from "vitest";
import { startProgram } from "../cli/start-program.ts";
import { postgresTests } from "../ledger/postgres-server.ts";
import { formats, post } from "../service/start-service.ts";
import { chargeNanos, makeKeys, rowsOf, startFleet } from "./fleet.ts";
import { ask, longWord, startLoad } from "./load.ts";
import { findNginx } from "./nginx.ts";
import { answered, type Replica, startReplica, until } from "./replicas.ts";

const able = postgresTests && findNginx() !== null;

describe.skipIf(!able)("three replicas behind nginx", () => {
  it("are restarted one after the other, and no request fails or is charged twice", async () => {
    await using fleet = await startFleet({
      name: "rolling",
      settings: { TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100" },
    });
    const { deployment, environment, folder, nginx, replicas } = fleet;
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
      replicas[index] = await startReplica({ folder, environment, port });
    }
    for (const replica of replicas) await until(async () => (await answered(replica)) > 20);
    const report = await load.stop();
    expect(report.failures, await nginx.errors()).toEqual([]);
    expect(new Set(report.done).size).toBe(report.sent);
    expect(report.sent).toBeGreaterThan(300);

    // Each ran once at the deployment, and was charged once.
    expect(deployment.requests).toHaveLength(report.sent);
    expect(
      await rowsOf(
        fleet,
        `select state, outcome, count(*)::int as count, min(charged_nanos)::text as least,
           max(charged_nanos)::text as most from tributary.reservation group by state, outcome`,
      ),
    ).toEqual([
      {
        state: "settled",
        outcome: "completed",
        count: report.sent,
        least: String(chargeNanos),
        most: String(chargeNanos),
      },
    ]);
    await using verify = startProgram(["verify"], folder, environment);
    expect(await verify.exited, verify.stdout() + verify.stderr()).toBe(0);
    console.log(JSON.stringify({ sent: report.sent }));
  });

  it("lose one by kill -9: its own streams end, and its accounts are served again before its leases end", async () => {
    await using fleet = await startFleet({
      name: "killed",
      settings: { TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "4" },
    });
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
    const again = async (): Promise<string | null> =>
      (await ask(agent, { index: 0, key: full, long: false })).failure;
    expect(await again()).toMatch(/: 429 .*concurrency_limit_exceeded/);

    victim.program.signal("SIGKILL");
    const killedAtMs = performance.now();
    for (const answer of lost) await expect(answer.text()).rejects.toThrow("terminated");
    const refusals: string[] = [];
    for (let refusal = await again(); refusal !== null; refusal = await again()) {
      refusals.push(refusal);
      await sleep(20);
    }
    const servedAfterMs = Math.round(performance.now() - killedAtMs);
    for (const answer of kept) expect(await answer.text()).toContain("data: [DONE]\n\n");
    // What is refused meanwhile is refused for its reason; none is lost between nginx and the dead replica.
    const otherwise = refusals.filter((refusal) => !refusal.includes("concurrency_limit_exceeded"));
    expect(otherwise).toEqual([]);
    // By the database's clock; `npm run rolling -- --kill` measures how long it takes.
    const [freed] = await rowsOf(
      fleet,
      `select count(*)::int as count, bool_and(resolved_at_ms < lease_until_ms) as early
         from tributary.reservation where state = 'expired'`,
    );
    expect(freed).toEqual({ count: 4, early: true });
    await agent.close();
    await using verify = startProgram(["verify"], folder, environment);
    expect(await verify.exited, verify.stdout() + verify.stderr()).toBe(0);
    console.log(JSON.stringify({ servedAfterMs, refusals: refusals.length }));
  });
});
