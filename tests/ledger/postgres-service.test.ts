import { expect, test } from "vitest";
import { openGateway } from "../../src/gateway.ts";
import { openLog } from "../../src/telemetry/log.ts";
import { openTelemetry } from "../../src/telemetry/telemetry.ts";
import { delta, finish, openGate } from "../doubles/scripted-deployment.ts";
import { post, startService } from "../service/start-service.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { execute, postgresTests } from "./postgres-server.ts";

// The whole service, twice, on one PostgreSQL.

test.skipIf(!postgresTests)(
  "two replicas share slots and balance, and a revocation made beside them holds in both",
  async () => {
    await using server = await openPostgresDatabases();
    const url = await server.createDatabase("shared");
    await using one = await startService({
      environment: {
        TRIBUTARY_DATABASE_URL: url,
        TRIBUTARY_DATABASE_CONNECTIONS: "3",
        TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "2",
      },
    });
    expect(one.logLines.join("")).toContain('"names":"0001-accounts, 0002-operations');
    const lines: string[] = [];
    const destination = { write: (text: string) => void lines.push(text), flush() {} };
    const log = openLog({ level: "debug", format: "json", terminal: false, destination });
    using telemetry = openTelemetry({ log, secrets: [] });
    const parts = { telemetry, onProgress: () => undefined };
    await using other = await openGateway({ ...one.config, port: 0 }, parts);
    expect(other.first).toBeNull();
    expect(lines.join("")).not.toContain("ledger migrated");

    const body = { messages: [{ role: "user", content: "Hi" }], max_completion_tokens: 100 };
    const path = "/v1/chat/completions";
    const gate = openGate();
    one.deployment.answerAlways(
      delta({ role: "assistant", content: "Hi" }),
      gate.step,
      finish("stop"),
    );
    const running = [
      post(one.url + path, body, { key: one.key }),
      post(other.address.url + path, body, { key: one.key }),
    ];
    await expect.poll(() => one.deployment.requests.length).toBe(2);
    for (const base of [one.url, other.address.url]) {
      const refused = await post(base + path, body, { key: one.key });
      expect([refused.status, await refused.json()]).toEqual([
        429,
        { error: expect.objectContaining({ code: "concurrency_limit_exceeded" }) as unknown },
      ]);
    }
    gate.open();
    for (const response of await Promise.all(running)) expect(response.status).toBe(200);
    const { balance } = await one.settledCredit();
    expect(balance).toBeLessThan(1_000n * 10n ** 9n);

    const [key] = await one.ledger.listKeys(one.accountId);
    await one.ledger.revokeKey(key?.id ?? "");
    for (const base of [one.url, other.address.url])
      expect((await post(base + path, body, { key: one.key })).status).toBe(401);
    expect(await one.credit()).toEqual({ balance, held: 0n });

    // Three of each replica and one by which it says that it lives, and of the operator's one that changes and one that looks.
    const crowd = Array.from({ length: 60 }, () => post(one.url + path, body, { key: one.key }));
    for (const response of await Promise.all(crowd)) await response.text();
    const [opened] = await execute(
      url,
      "select count(*) as count from pg_stat_activity where application_name = 'tributary' and datname = current_database()",
    );
    expect(Number(opened?.["count"])).toBeGreaterThan(3);
    expect(Number(opened?.["count"])).toBeLessThanOrEqual(10);
  },
);
