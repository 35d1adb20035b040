import { execFile } from "node:child_process";
import { mkdtempSync, chmodSync, rmSync } from "node:fs";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { openRecordingShell } from "../cli/recording-shell.ts";
import { startProgram } from "../cli/start-program.ts";
import { scriptOf } from "../documents/script-of.ts";
import { startScriptedDeployment, textAnswer } from "../doubles/scripted-deployment.ts";
import { orderOf, settlementOf } from "../ledger/orders.ts";
import { execute, findPostgres, postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { defaultSettings } from "../ledger/support.ts";
import { formats, post } from "../service/start-service.ts";

const run = promisify(execFile);
const rules = { ...defaultSettings, requestsPerMinute: 1_000_000, concurrencyPerAccount: 100 };
const startingNanos = 10n ** 15n;
/** What `settlementOf` charges at the default prices. */
const chargeNanos = 580_000n;

/** Lines of docs/recovery.md, with their places. */
function linesOf(mark: string, places: Readonly<Record<string, string>> = {}): readonly string[] {
  return scriptOf("docs/recovery.md", mark).map((line) =>
    line.replaceAll(/\$([A-Z]+)/g, (_all, name: string) => places[name] ?? ""),
  );
}

/** One address in front of whichever server is the primary, as a proxy or an address that moves. */
interface Front extends AsyncDisposable {
  readonly url: string;
  /** Leads new connections there, and ends those that there are. */
  lead(socketPath: string): void;
}

async function openFront(first: string): Promise<Front> {
  const open = new Set<Socket>();
  let target = first;
  const server = createServer((client) => {
    const upstream = connect(target);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one.on("error", () => undefined);
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const end = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: `postgres://ledger@127.0.0.1:${String(port)}/books`,
    lead(socketPath) {
      target = socketPath;
      end();
    },
    async [Symbol.asyncDispose]() {
      end();
      server.close();
      await once(server, "close");
    },
  };
}

/** Requests whose caller was answered by the ledger, and what the answer was. */
interface Acknowledged {
  readonly admitted: Set<string>;
  readonly settled: Set<string>;
}

/** Four callers, who settle what they admitted whatever becomes of the server; a refused one comes again. */
async function startCallers(
  ledger: StoreLedger,
  secret: string,
): Promise<{ readonly acknowledged: Acknowledged; stop(): Promise<void> }> {
  const acknowledged: Acknowledged = { admitted: new Set(), settled: new Set() };
  const stopped = new AbortController();
  const caller = await ledger.authorize(secret, false);
  const callers = Array.from({ length: 4 }, async () => {
    while (!stopped.signal.aborted) {
      const order = orderOf(caller);
      const admitted = await ledger.admit(order).then(
        () => true,
        () => false,
      );
      if (admitted) acknowledged.admitted.add(order.requestId);
      // Whoever had no answer may have been admitted, and releases.
      const { usage, outcome } = settlementOf(order);
      const ending = admitted ? { usage, outcome } : { usage: null, outcome: "failed" as const };
      await ledger.settle({ ...settlementOf(order), ...ending });
      if (admitted) acknowledged.settled.add(order.requestId);
      else await delay(20);
    }
  });
  return {
    acknowledged,
    async stop() {
      stopped.abort();
      await Promise.all(callers);
    },
  };
}

it.skipIf(!postgresTests)(
  "a synchronous standby that takes the place of a killed primary has all that was acknowledged, and no replica is restarted",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "tributary-standby-"));
    await using opened = new AsyncDisposableStack();
    opened.defer(() => rmSync(folder, { recursive: true, force: true }));
    chmodSync(folder, 0o777);
    const primary = opened.use(await startPostgres());
    await primary.createDatabase("books");
    const places = {
      STANDBY: join(folder, "standby"),
      PRIMARY: dirname(primary.socket),
      USER: "ledger",
    };
    const [copy = ""] = linesOf("standby", places);
    const [program = "", ...words] = copy.split(" ");
    await run(join(findPostgres(program) ?? "", program), [...words, "--no-sync"]);
    const standby = opened.use(await startPostgres({ from: places.STANDBY }));
    for (const sql of linesOf("synchronous")) await execute(primary.url("books"), sql);
    await expect
      .poll(() => execute(primary.url("books"), "select sync_state from pg_stat_replication"))
      .toEqual([{ sync_state: "sync" }]);

    const front = opened.use(await openFront(primary.socket));
    const ledger = opened.use(
      await openPostgresLedger({ ...rules, url: front.url }, { serves: true }),
    );
    const { id } = await ledger.createAccount("load", startingNanos);
    const { secret } = await ledger.createKey(id, "load");
    const other = await ledger.createAccount("service", startingNanos);
    const { secret: key } = await ledger.createKey(other.id, "service");
    const deployment = opened.use(await startScriptedDeployment());
    deployment.answerAlways(...textAnswer("Hello"));
    const service = opened.use(
      startProgram(["serve", "--json"], folder, {
        TRIBUTARY_PORT: "0",
        TRIBUTARY_DATA_DIR: folder,
        TRIBUTARY_DATABASE_URL: front.url,
        TRIBUTARY_DEPLOYMENT_URL: deployment.url,
        TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      }),
    );
    const [, url = ""] = await service.waitFor(/"url":"(http:[^"]+)"[^\n]*"event":"listening"/);
    const [chat] = formats;
    const status = async (): Promise<number> => {
      const answer = await post(url + chat.path, chat.body, { key });
      await answer.arrayBuffer();
      return answer.status;
    };
    expect(await status()).toBe(200);

    const load = await startCallers(ledger, secret);
    await expect.poll(() => load.acknowledged.settled.size).toBeGreaterThan(100);
    const shell = openRecordingShell(folder, { TRIBUTARY_DATABASE_URL: standby.url("books") });
    for (const words of [["verify"], ["usage"], ["account", "list"]])
      expect(await shell(...words)).toMatchObject({ exitCode: 0 });
    expect(await shell("account", "create", "late")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("it is a standby"),
    });
    const { heads } = await ledger.verify([], true);
    const killedAtMs = performance.now();
    await primary.stop("crash");
    const settledBefore = load.acknowledged.settled.size;
    for (const sql of linesOf("promote")) await execute(standby.url("books"), sql);
    front.lead(standby.socket);
    await expect.poll(status).toBe(200);
    const servedAfterMs = Math.round(performance.now() - killedAtMs);
    await expect.poll(() => load.acknowledged.settled.size).toBeGreaterThan(settledBefore + 100);
    await load.stop();
    console.log(JSON.stringify({ servedAfterMs, settled: load.acknowledged.settled.size }));

    expect((await ledger.verify(heads)).problems).toEqual([]);
    const rows = await execute(
      standby.url("books"),
      `select request_id, state, charged_nanos::text as charged from tributary.reservation where account_id = '${id}'`,
    );
    const charged = new Set(
      rows.filter((row) => row["charged"] === String(chargeNanos)).map((row) => row["request_id"]),
    );
    const { admitted, settled } = load.acknowledged;
    expect([...admitted, ...settled].filter((request) => !charged.has(request))).toEqual([]);
    expect(charged.size).toBe(settled.size);
    expect(await ledger.showAccount(id)).toMatchObject({
      heldNanos: 0n,
      balanceNanos: startingNanos - BigInt(charged.size) * chargeNanos,
    });
  },
);
