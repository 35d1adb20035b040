import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import type { EntryRow } from "../../src/ledger/administration/entry-row.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { defaultSettings, temporaryLedger } from "../ledger/support.ts";
import { openReceiver } from "../webhooks/receiver.ts";

// The receiver fails half of the time, and processes that change accounts and deliver are killed ten times.

// So that three days of tries pass in a quarter of a minute.
const speed = 20_000;
const kills = 10;
const eventsMin = 1_000;
const processes = 2;
const child = fileURLToPath(new URL("deliver-child.ts", import.meta.url));

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** The entries that added credit, of all accounts. */
async function committedEntries(
  ledger: StoreLedger,
  accounts: readonly string[],
): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for (const accountId of accounts)
    for await (const { balanceDeltaNanos, sequence } of entriesOf(ledger, accountId))
      if (balanceDeltaNanos > 0n) keys.add(`${accountId} ${String(sequence)}`);
  return keys;
}

async function* entriesOf(ledger: StoreLedger, accountId: string): AsyncGenerator<EntryRow> {
  for (let before: number | null = null; ;) {
    const rows: readonly EntryRow[] = await ledger.pageEntries({ accountId, before, rowsMax: 500 });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined) return;
    before = last.sequence;
  }
}

/** A receiver that verifies what comes and fails half of the time; what arrived, by event. */
async function openMoodyReceiver() {
  const webhook: { secret: string } = { secret: "" };
  const arrived = new Map<string, { readonly entry: string; tries: number }>();
  const receiver = await openReceiver((response, { body, headers }) => {
    // Throws where the signature is wrong, which fails the test.
    const event = new Webhook(webhook.secret).verify(body, headers as Record<string, string>) as {
      readonly id: string;
      readonly data: { readonly account: string; readonly entry: number };
    };
    const { account, entry } = event.data;
    const one = arrived.get(event.id) ?? { entry: `${account} ${String(entry)}`, tries: 0 };
    arrived.set(event.id, one);
    one.tries += 1;
    const [byte = 0] = createHash("sha256")
      .update(`${event.id} ${String(one.tries)}`)
      .digest();
    response.writeHead(byte % 2 === 0 ? 200 : 500).end();
  });
  return { webhook, arrived, receiver };
}

/** Runs processes, kills one after another while they work, and goes on until so much has happened. */
async function killWhileTheyWork(
  ledger: StoreLedger,
  accounts: readonly string[],
  start: (accounts: readonly string[]) => ChildProcess,
): Promise<void> {
  const running = Array.from({ length: processes }, () => start(accounts));
  const end = async (one: ChildProcess | undefined): Promise<void> => {
    if (one === undefined) return;
    // It has begun to work.
    if (one.stdout !== null) await once(one.stdout, "data");
    const exited = once(one, "exit");
    one.kill("SIGKILL");
    await exited;
  };
  for (let killed = 0; killed < kills; killed += 1) {
    await pause(100 + killed * 30);
    await end(running[killed % processes]);
    running[killed % processes] = start(accounts);
  }
  while ((await committedEntries(ledger, accounts)).size < eventsMin) await pause(200);
  for (const one of running) await end(one);
}

/** Waits until each event has come through, sending again what used up its tries. */
async function deliverTheRest(ledger: StoreLedger, webhookId: string, total: number) {
  const page = { id: webhookId, before: null, rowsMax: 2 * total } as const;
  for (;;) {
    for (const { event } of await ledger.pageDeliveries({ ...page, state: "failed" }))
      await ledger.resendDelivery(webhookId, event.id);
    const delivered = await ledger.pageDeliveries({ ...page, state: "delivered" });
    if (delivered.length === total) return;
    await pause(200);
  }
}

async function runWith(address: string, open: (now: () => number) => Promise<StoreLedger>) {
  const beganMs = Date.now();
  await using ledger = await open(() => beganMs + (Date.now() - beganMs) * speed);
  const { arrived, receiver, webhook } = await openMoodyReceiver();
  await using _ = receiver;
  const settings = { url: receiver.url, description: "", types: null, status: "active" } as const;
  const { record, secret } = await ledger.createWebhook(settings);
  webhook.secret = secret;
  const accounts: string[] = [];
  for (let count = 0; count < 10; count += 1)
    accounts.push((await ledger.createAccount("shop", 1n)).id);
  const start = (its: readonly string[]): ChildProcess =>
    spawn(process.execPath, [child, address, String(beganMs), String(speed), ...its], {
      stdio: ["ignore", "pipe", "inherit"],
    });
  await killWhileTheyWork(ledger, accounts, start);
  const committed = await committedEntries(ledger, accounts);
  const last = start([]);
  await deliverTheRest(ledger, record.id, committed.size);
  const exited = once(last, "exit");
  last.kill("SIGKILL");
  await exited;
  return { arrived, committed };
}

describe.each([
  { name: "SQLite", runs: true },
  { name: "PostgreSQL", runs: postgresTests },
])("$name", ({ name, runs }) => {
  test.runIf(runs)(
    "each of 1,000 events arrives at least once, and none of a change that was not committed",
    { timeout: 240_000 },
    async () => {
      await using opened = new AsyncDisposableStack();
      const isSqlite = name === "SQLite";
      const address = isSqlite
        ? opened.use(temporaryLedger()).path
        : await opened.use(await startPostgres()).createDatabase("webhooks_under_kills");
      const { arrived, committed } = await runWith(address, (now) =>
        isSqlite
          ? openSqliteLedger({ ...defaultSettings, synchronous: "full", path: address }, { now })
          : openPostgresLedger({ ...defaultSettings, url: address }, { now }),
      );
      expect(committed.size).toBeGreaterThanOrEqual(eventsMin);
      const entries = [...arrived.values()].map(({ entry }) => entry);
      expect(entries.length, "one event for one entry").toBe(new Set(entries).size);
      expect(new Set(entries)).toEqual(committed);
      const tries = [...arrived.values()].map((one) => one.tries);
      console.log(
        JSON.stringify({
          events: entries.length,
          tries: tries.reduce((sum, one) => sum + one, 0),
          most: Math.max(...tries),
        }),
      );
      // The receiver has failed, or nothing was shown.
      expect(Math.max(...tries)).toBeGreaterThan(5);
    },
  );
});
