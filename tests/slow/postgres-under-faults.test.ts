import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Failure } from "../../src/failure.ts";
import type { AdmitOrder, Caller } from "../../src/ledger/ledger.ts";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { StoreFault, type FaultReason } from "../../src/ledger/store-fault.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { orderOf, settlementOf } from "../ledger/orders.ts";
import {
  execute,
  postgresTests,
  startPostgres,
  type PostgresServer,
} from "../ledger/postgres-server.ts";
import { defaultSettings } from "../ledger/support.ts";

// A replica and its server while the server restarts, the network between them passes nothing or little, the disk is
// full, or the clock is set back: nothing is lost, nothing is charged twice, what was held returns, the ledger verifies,
// and each fault comes with its remedy.

const startingNanos = 10n ** 15n;
/** What `settlementOf` charges at the default prices. */
const chargeNanos = 580_000n;
const leaseMs = 3_000;

type Direction = "requests" | "answers";

/** A line to the server that can stop passing bytes, keep them, and deliver them late, as a network does. */
interface Line extends AsyncDisposable {
  url(database: string): string;
  hold(direction: Direction): void;
  /** Everything is delivered, also for those who have hung up meanwhile. */
  pass(): void;
  delayMs: number;
}

async function openLine(server: PostgresServer): Promise<Line> {
  const sockets = new Set<Socket>();
  const held: (() => void)[] = [];
  let holding: Direction | null = null;
  const line = { delayMs: 0 };

  function carry(from: Socket, to: Socket, direction: Direction): void {
    const deliver = (step: () => void): void => {
      if (holding === direction) held.push(step);
      else if (line.delayMs > 0) setTimeout(step, line.delayMs);
      else step();
    };
    from.on("data", (bytes) => {
      deliver(() => void to.write(bytes));
    });
    from.on("error", () => {});
    from.on("end", () => {
      deliver(() => void to.end());
    });
    from.on("close", () => {
      deliver(() => {
        to.destroySoon();
      });
    });
  }

  const proxy = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ path: server.socket, allowHalfOpen: true });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("close", () => void sockets.delete(socket));
    }
    carry(client, upstream, "requests");
    carry(upstream, client, "answers");
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  return Object.assign(line, {
    url: (database: string) => `postgres://ledger@127.0.0.1:${String(port)}/${database}`,
    hold(direction: Direction) {
      holding = direction;
    },
    pass() {
      holding = null;
      for (const step of held.splice(0)) step();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, "close");
    },
  });
}

interface Replica extends AsyncDisposable {
  readonly ledger: StoreLedger;
  readonly caller: Caller;
  readonly secret: string;
  /** Lines of the log about settlements that had to be tried again. */
  readonly told: StoreFault[];
}

async function openReplica(url: string, busyMs = 500): Promise<Replica> {
  const { concurrencyPerAccount, prices } = defaultSettings;
  const told: StoreFault[] = [];
  const rules = { concurrencyPerAccount, prices, leaseMs, requestsPerMinute: 100_000 };
  const ledger = await openPostgresLedger(
    { ...rules, url, busyMs, connections: 8 },
    {
      telemetry: {
        ledgerRetry: ({ cause }) => void (cause instanceof StoreFault && told.push(cause)),
      },
    },
  );
  const { id } = await ledger.createAccount("test", startingNanos);
  const { secret } = await ledger.createKey(id, "test");
  const caller = await ledger.authorize(secret, true);
  return {
    ledger,
    caller,
    secret,
    told,
    [Symbol.asyncDispose]: () => ledger[Symbol.asyncDispose](),
  };
}

/** One request in order, as a service does it: what may be held after a fault is released. Whether it was charged. */
async function serve({ ledger, secret }: Replica): Promise<boolean> {
  let order: AdmitOrder;
  try {
    order = orderOf(await ledger.authorize(secret, true));
  } catch {
    return false;
  }
  try {
    await ledger.admit(order);
  } catch {
    await ledger.settle({ ...settlementOf(order), outcome: "failed", usage: null });
    return false;
  }
  return (await ledger.settle(settlementOf(order))).chargedNanos === chargeNanos;
}

/** Once every lease has ended: held is back to 0, this many were charged, and the ledger verifies. */
async function expectWhole({ caller, ledger }: Replica, charged: number): Promise<void> {
  await eventually(async () => {
    await ledger.expire();
    return (await ledger.showAccount(caller.accountId)).heldNanos === 0n;
  });
  expect(await ledger.showAccount(caller.accountId)).toMatchObject({
    balanceNanos: startingNanos - BigInt(charged) * chargeNanos,
  });
  expect(await ledger.verify([])).toMatchObject({ ok: true, problems: [] });
}

/** Asks again and again, also while the database is away; tests that run beside each other share no `expect.poll`. */
async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + 30_000;
  for (;;) {
    if (await holds().catch(() => false)) return;
    if (performance.now() > untilMs) throw new Error(`it never came true: ${String(holds)}`);
    await delay(100);
  }
}

function expectTold(told: readonly StoreFault[], reasons: readonly FaultReason[]): void {
  expect(told.length).toBeGreaterThan(0);
  for (const { message, reason, remedy } of told) {
    expect(reasons, message).toContain(reason);
    expect(remedy).toMatch(/\w+\. \w/);
  }
}

describe.skipIf(!postgresTests)("PostgreSQL under faults", () => {
  let server: PostgresServer;
  let databases = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function newDatabase(): Promise<string> {
    const name = `faults_${String((databases += 1))}`;
    await server.createDatabase(name);
    return name;
  }

  const phases = ["authorize", "admit", "renew", "settle"] as const;
  const cases = phases.flatMap((phase) =>
    (["requests", "answers"] as const).map((direction) => ({ phase, direction })),
  );

  test.concurrent.each(cases)(
    "a line that passes no $direction during $phase",
    async ({ direction, phase }) => {
      await using line = await openLine(server);
      await using replica = await openReplica(line.url(await newDatabase()));
      const { caller, ledger, secret, told } = replica;
      const running = orderOf(caller);
      await ledger.admit(running);
      line.hold(direction);
      const asked = orderOf(caller);
      const steps = {
        authorize: () => ledger.authorize(secret, true),
        admit: () => ledger.admit(asked),
        renew: () => ledger.renew([running.requestId]),
        settle: () => ledger.settle(settlementOf(running)),
      };
      const outcome = steps[phase]().then(
        () => "done",
        (error: unknown) => error,
      );
      if (phase !== "settle")
        expect(await outcome).toMatchObject({
          code: "overloaded",
          cause: { reason: "database-silent" },
        });
      const owed = [
        ledger.settle(settlementOf(running)),
        ...(phase === "admit"
          ? [ledger.settle({ ...settlementOf(asked), outcome: "failed", usage: null })]
          : []),
      ];
      await eventually(() => Promise.resolve(told.length > 0));
      line.pass();
      if (phase === "settle") expect(await outcome).toBe("done");
      await Promise.all(owed);
      expectTold(told, ["database-silent", "database-away"]);
      // Its lease may have ended on the way: then it was charged nothing.
      const { charged } = await ledger.showReceipt(running.requestId).then((receipt) => ({
        charged: receipt.chargedNanos === chargeNanos ? 1 : 0,
      }));
      await expectWhole(replica, charged);
    },
    60_000,
  );

  test("a line and a server that are slow: every request is served, and charged once", async () => {
    await using line = await openLine(server);
    await using replica = await openReplica(line.url(await newDatabase()), 5_000);
    line.delayMs = 150;
    const served = await Promise.all(
      Array.from({ length: 4 }, async () => [await serve(replica), await serve(replica)]),
    );
    expect(served.flat()).toEqual(Array.from({ length: 8 }, () => true));
    expect(replica.told).toEqual([]);
    await expectWhole(replica, 8);
  }, 60_000);

  test("a clock of the server that is set back an hour, and forward again", async () => {
    const name = await newDatabase();
    await using replica = await openReplica(server.url(name));
    const { caller, ledger } = replica;
    const setClock = (hours: number): Promise<unknown> =>
      execute(
        server.url(name),
        `create or replace function tributary.now_ms() returns bigint language sql volatile as $body$
           select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + ${String(hours * 3_600_000)}
         $body$`,
      );
    const before = orderOf(caller);
    await ledger.admit(before);
    await setClock(-1);
    expect(await ledger.renew([before.requestId])).toEqual(new Set([before.requestId]));
    expect(await serve(replica)).toBe(true);
    const meanwhile = orderOf(caller);
    await ledger.admit(meanwhile);
    expect((await ledger.settle(settlementOf(before))).chargedNanos).toBe(chargeNanos);
    await setClock(0);
    // As the keeper of leases does it: its own first, then those of the dead.
    expect(await ledger.renew([meanwhile.requestId])).toEqual(new Set([meanwhile.requestId]));
    expect(await ledger.expire()).toBe(0);
    expect((await ledger.settle(settlementOf(meanwhile))).chargedNanos).toBe(chargeNanos);
    await expectWhole(replica, 3);
  }, 60_000);

  test("a server that restarts under load, in order and by a crash", async () => {
    await using replica = await openReplica(server.url(await newDatabase()));
    let charged = 0;
    const stop = new AbortController();
    // One less than the account may run: a request of the test's own is under way at each restart.
    const load = Array.from({ length: defaultSettings.concurrencyPerAccount - 1 }, async () => {
      while (!stop.signal.aborted) {
        if (await serve(replica)) charged += 1;
        else await delay(20);
      }
    });
    for (const how of ["crash", "in-order", "crash"] as const) {
      const until = charged + 20;
      await expect.poll(() => charged, { timeout: 20_000 }).toBeGreaterThan(until);
      const running = orderOf(replica.caller);
      await replica.ledger.admit(running);
      const before = replica.told.length;
      await server.stop(how);
      const settling = replica.ledger.settle(settlementOf(running));
      await eventually(() => Promise.resolve(replica.told.length > before));
      await server.start();
      // Its lease may have ended on the way: then it was charged nothing.
      if ((await settling).chargedNanos === chargeNanos) charged += 1;
    }
    const until = charged + 20;
    await expect.poll(() => charged, { timeout: 20_000 }).toBeGreaterThan(until);
    stop.abort();
    await Promise.all(load);
    // A settlement whose answer was lost is asked for again, and answers what it had charged.
    expectTold(replica.told, ["database-away", "database-restarting", "database-silent"]);
    await expectWhole(replica, charged);
  }, 120_000);
});

const mounts = postgresTests && process.getuid?.() === 0;

describe.skipIf(!mounts)("PostgreSQL on a disk that is full", () => {
  test("refuses with what to do, and goes on when there is room", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pg-full-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=160m", "tmpfs", folder]);
    try {
      await using server = await startPostgres({ parent: folder });
      await using replica = await openReplica(await server.createDatabase("full_disk"));
      const { caller, ledger } = replica;
      let charged = 0;
      for (let request = 0; request < 10; request += 1) if (await serve(replica)) charged += 1;
      const running = orderOf(caller);
      await ledger.admit(running);
      const filler = join(folder, "filler");
      fillDisk(filler);
      // Pages and logs that are there take some more; then a table cannot grow.
      const owed: Promise<boolean>[] = [];
      const faults: unknown[] = [];
      while (faults.length === 0) {
        const order = orderOf(caller);
        await ledger.admit(order).then(
          () => void owed.push(ledger.settle(settlementOf(order)).then(({ applied }) => applied)),
          ({ cause }: Failure) => void faults.push(cause),
        );
        // A settlement that finds no room waits for it.
        const settled = Promise.all(owed).then(() => true);
        await eventually(
          async () => (await Promise.race([settled, delay(50)])) ?? replica.told.length > 0,
        );
        faults.push(...replica.told);
      }
      expectTold(faults as StoreFault[], ["database-full", "database-away", "database-restarting"]);
      await expect(ledger.check()).rejects.toMatchObject({ code: "overloaded" });
      rmSync(filler);
      if (!(await isUp(server))) {
        await server.stop("crash");
        await server.start();
      }
      expect((await ledger.settle(settlementOf(running))).applied).toBe(true);
      charged += (await Promise.all(owed)).length;
      await expectWhole(replica, charged + 1);
      expect(await serve(replica)).toBe(true);
    } finally {
      execFileSync("umount", ["-l", folder]);
      rmSync(folder, { recursive: true, force: true });
    }
  }, 120_000);
});

/** Fills what is left of the disk that the file is on. */
function fillDisk(path: string): void {
  for (let size = 64 * 1024 * 1024; size >= 4_096;) {
    try {
      writeFileSync(path, new Uint8Array(size), { flag: "a" });
    } catch {
      size /= 2;
    }
  }
}

async function isUp(server: PostgresServer): Promise<boolean> {
  return execute(server.url("postgres"), "select 1").then(
    () => true,
    () => false,
  );
}
