import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { orderOf, settlementOf } from "../ledger/orders.ts";
import { readDocument } from "../documents/tables.ts";
import { startOperators, type TestOperators } from "./start-operators.ts";

// Every recipe of docs/operator-api.md, run as it is shown.

const run = promisify(execFile);

/** What a recipe works on, and what it answered. */
interface Stage {
  readonly operators: TestOperators;
  readonly account: string;
  readonly key: string;
  readonly secret: string;
  readonly answers: readonly Record<string, unknown>[];
  /** All that it printed. */
  readonly text: string;
  /** Stops the ledger's clock there. */
  readonly moveTo: (ms: number) => void;
  /** One request of 100 input tokens, 50 of them cached, and 10 of output: what it is charged, in nanos. */
  readonly serve: () => Promise<bigint>;
}

/** By the beginning of its title: what must be true after a recipe. */
const checks: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  "A shop that tops up": async ({ account, answers, operators }) => {
    expect(answers).toHaveLength(1);
    const entries = await operators.ledger.pageEntries({
      accountId: account,
      before: null,
      rowsMax: 1,
    });
    expect(entries).toMatchObject([{ balanceDeltaNanos: 25_000_000_000n, reference: "pi_4711" }]);
    const again = { kind: "top_up", reference: "pi_4711" } as const;
    const repeated = await operators.ledger.creditAccount(account, 25_000_000_000n, again);
    expect(repeated.entry).toEqual(entries[0]);
  },
  "A refund": async ({ answers, operators }) => {
    expect(answers).toMatchObject([{ charged: "0.00014" }, { entry: { kind: "refund" } }]);
    expect((await operators.ledger.showReceipt("req_1")).refundedNanos).toBe(3_000n);
    expect((await operators.ledger.verify([])).problems).toEqual([]);
  },
  "The statement of a month": async ({ account, answers }) => {
    expect(answers).toMatchObject([{ account, month: "2026-10", days: [] }]);
    await Promise.resolve();
  },
  "A disputed charge": async ({ answers }) => {
    const entries = [
      { request: "req_1", kind: "settle" },
      { request: "req_1" },
      { kind: "credit" },
    ];
    expect(answers).toMatchObject([{ id: "req_1", charged: "0.00014" }, { data: entries }, {}]);
    await Promise.resolve();
  },
  "Whose is a key": async ({ answers, key, operators }) => {
    expect(answers).toMatchObject([{ data: [] }, { id: key }]);
    expect((await operators.ledger.findKey(key))?.revokedAtMs).not.toBeNull();
  },
  "Rotating a key without downtime": async ({ answers, key, operators, secret }) => {
    const [rotated] = answers;
    expect(rotated).toMatchObject({ id: key, secret_shown: false });
    for (const one of [secret, String(rotated?.["secret"])])
      expect(await operators.ledger.authorize(one, true)).toMatchObject({ keyId: key });
    const untilMs = Date.parse(String(rotated?.["previous_secret_until"]));
    expect(untilMs).toBeGreaterThan(Date.now() + 86_000_000);
  },
  "Cut a key off now": async ({ answers, key, operators, secret }) => {
    expect(answers).toMatchObject([{ id: key, status: "paused" }]);
    const refused = operators.ledger.authorize(secret, true);
    await expect(refused).rejects.toMatchObject({ code: "key_paused" });
  },
  "Cut an account off now": async ({ account, operators }) => {
    expect((await operators.ledger.showAccount(account)).status).toBe("disabled");
  },
  "Who spent what last month": async ({ account, key, text }) => {
    const [heads = "", ...rows] = text.split("\r\n");
    const cells = (line: string): readonly string[] => line.split(",");
    const [row = ""] = rows;
    const spent = Object.fromEntries(cells(heads).map((head, at) => [head, cells(row)[at]]));
    expect(spent).toMatchObject({ account, key, requests: "1", charged: "0.00014" });
    expect(spent).toMatchObject({ account_name: "shop", key_name: "web", input_tokens: "100" });
    expect(rows[1]).toMatch(/^\n200/);
    await Promise.resolve();
  },
  "A monthly budget for a team": async ({ answers, key, operators, serve }) => {
    const budget = { amount: "200", period: "month", timezone: "Europe/Berlin" };
    expect(answers).toMatchObject([{ id: key, budget, budget_left: "200" }]);
    const charged = await serve();
    expect((await operators.ledger.findKey(key))?.budget).toMatchObject({ spentNanos: charged });
  },
  "So much a month for a team": async ({ account, answers, moveTo, operators, serve }) => {
    expect(answers).toMatchObject([{ id: account, balance: "1200", grant_left: "200" }]);
    await serve();
    moveTo(firstOfMonth + 86_400_000);
    expect(await operators.ledger.showAccount(account)).toMatchObject({
      balanceNanos: 1_200n * 10n ** 9n,
      grantLeftNanos: 200n * 10n ** 9n,
    });
  },
  "A price change on the first of a month": async ({ answers, moveTo, operators, serve }) => {
    expect(answers).toMatchObject([{ version: 1 }, { version: 2 }]);
    // 50 at 1, 50 at 0.1 and 10 at 4 credits a million; then 0.8, 0.08 and 3.5.
    expect(await serve()).toBe(95_000n);
    moveTo(firstOfMonth - 1);
    expect(await serve()).toBe(95_000n);
    moveTo(firstOfMonth);
    expect(await serve()).toBe(79_000n);
    expect((await operators.ledger.verify([])).problems).toEqual([]);
  },
};

const today = new Date();
/** What stands for the dates of the document, which may be over. */
const firstOfMonth = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1, 1);

const [, text = ""] = readDocument("docs/operator-api.md").split("\n## Recipes\n");
const all = text
  .split(/^(?=\*\*)/m)
  .filter((part) => part.startsWith("**"))
  .map((part) => {
    const [, title = ""] = /^\*\*(.+?)\*\*/.exec(part) ?? [];
    const blocks = [...part.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
    return { title, script: blocks.join("") };
  });

const recipes = all.filter(({ script }) => script.includes("curl "));

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tributary-recipes-"));
  await writeFile(join(folder, ".curlrc"), String.raw`write-out = "\n%{http_code}\n"`);
});
afterAll(() => rm(folder, { recursive: true }));

async function openStage(): Promise<{
  readonly stage: Omit<Stage, "answers" | "text">;
  readonly token: string;
}> {
  let stoppedAtMs: number | null = null;
  const operators = await startOperators({ now: () => stoppedAtMs ?? Date.now() });
  const { ledger } = operators;
  const account = await ledger.createAccount("shop", 10n ** 12n);
  const { record, secret } = await ledger.createKey(account.id, "web");
  const { token } = await operators.newToken("owner");
  let requests = 0;
  const stage = {
    operators,
    account: account.id,
    key: record.id,
    secret,
    moveTo: (ms: number) => void (stoppedAtMs = ms),
    async serve() {
      requests += 1;
      const caller = await ledger.authorize(secret, true);
      const order = orderOf(caller, { requestId: `req_${String(requests)}` });
      await ledger.admit(order);
      const settlement = settlementOf(order, [100, 10]);
      const usage = settlement.usage && { ...settlement.usage, cachedInputTokens: 50 };
      return (await ledger.settle({ ...settlement, usage })).chargedNanos;
    },
  };
  return { stage, token };
}

describe("the recipes of docs/operator-api.md", () => {
  test("each has a check, and each check a recipe", () => {
    const named = recipes.map(({ title }) =>
      Object.keys(checks).find((name) => title.startsWith(name)),
    );
    expect(named).toEqual(expect.arrayContaining(Object.keys(checks)));
    expect(named).not.toContain(undefined);
  });

  test("Disaster recovery", async () => {
    const recovery = all.find(({ title }) => title.startsWith("Disaster recovery"));
    const program = `${process.execPath} ${join(import.meta.dirname, "../../src/cli/tributary.cjs")}`;
    const script = `npm run -s tributary -- account create shop --credit 10\n${recovery?.script ?? ""}`;
    const cwd = await mkdtemp(join(folder, "recovery-"));
    const shown = script.replaceAll("npm run -s tributary --", program);
    const { stdout } = await run("sh", ["-euc", shown], {
      cwd,
      env: { PATH: process.env["PATH"] },
    });
    expect(stdout).toMatch(
      /ok: 1 entry of 1 account.*continues the heads given\.\nWhat was there is in \S+\. It had nothing that the backup has not\.\n$/,
    );
  });

  test.each(recipes)("$title", async ({ script, title }) => {
    const { stage, token } = await openStage();
    await using _ = stage.operators;
    const { account, key } = stage;
    const request = "req_1";
    if (/\$request|2026-10-01/.test(script)) await stage.serve();
    const shown = script
      .replaceAll("http://127.0.0.1:8081", stage.operators.url)
      .replaceAll("2027-01-01T00:00:00Z", new Date(firstOfMonth).toISOString())
      .replaceAll("2026-10-01T00:00:00Z", new Date(today.getTime() - 86_400_000).toISOString())
      .replaceAll("2026-11-01T00:00:00Z", new Date(firstOfMonth).toISOString());
    const given = { token, account, key, request };
    const env = { PATH: process.env["PATH"], HOME: folder, CURL_HOME: folder, ...given };
    const { stdout } = await run("sh", ["-euc", shown], { env });
    const lines = stdout.trim().split("\n");
    const statuses = lines.filter((line) => /^\d{3}$/.test(line));
    expect(statuses.map(Number).every((status) => status >= 200 && status < 300)).toBe(true);
    const answers = lines
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(statuses.length).toBeGreaterThanOrEqual(Math.max(answers.length, 1));
    const check = Object.entries(checks).find(([name]) => title.startsWith(name));
    await check?.[1]({ ...stage, answers, text: stdout });
  });
});
