import type { ArchiveBatch } from "../../src/ledger/archive/archive-receipts.ts";
import { DatabaseSync } from "node:sqlite";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client } from "pg";
import { Failure } from "../../src/failure.ts";
import type { Caller } from "../../src/ledger/ledger.ts";
import { OperatorError } from "../../src/ledger/operator-error.ts";
import type {
  ArgumentOf,
  OperationName,
  StoreCall,
  StoreClient,
} from "../../src/ledger/store-operations.ts";
import { connectPostgresStore } from "../../src/ledger/postgres/store.ts";
import { openStore } from "../../src/ledger/sqlite/store.ts";
import {
  aCommand,
  accountIds,
  accountOfName,
  contractRules,
  keyIds,
  type Command,
} from "./contract-commands.ts";
import { LedgerModel, type ModelBudget, type ModelAnswer, type ModelCaller } from "./model.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { postgresTests, type PostgresDatabases } from "./postgres-server.ts";
import { auditProblems, defaultSettings, secretHash, temporaryLedger } from "./support.ts";
import { makeLedger } from "./made-ledger.ts";

// Both stores and a model that knows no database are given the same commands, from two replicas in turn: every answer is
// equal to the letter, and in the end so are the rows, the journals and the hashes that chain them.

const settings = {
  ...defaultSettings,
  concurrencyPerAccount: contractRules.concurrency,
  requestsPerMinute: contractRules.perMinute,
  leaseMs: contractRules.leaseMs,
};

interface World {
  readonly model: LedgerModel;
  readonly stores: readonly Replicas[];
  readonly callers: { readonly caller: Caller; readonly model: ModelCaller }[];
  now: number;
  tickets: number;
}

/** Two replicas on one store. */
interface Replicas extends AsyncDisposable {
  call<Name extends OperationName>(
    replica: 0 | 1,
    name: Name,
    argument: ArgumentOf<Name>,
  ): Promise<unknown>;
  reconnect(replica: 0 | 1): Promise<void>;
  rows(sql: string): Promise<readonly (readonly string[])[]>;
}

describe.skipIf(!postgresTests)("the contract of the stores", () => {
  let server: PostgresDatabases;
  let url: string;
  let client: Client;
  beforeAll(async () => {
    server = await openPostgresDatabases();
    url = await server.createDatabase("contract");
    const store = await connectPostgresStore({ ...settings, url }, {});
    await store[Symbol.asyncDispose]();
    client = new Client({ connectionString: url });
    await client.connect();
    await client.query("set search_path = tributary");
  });
  afterAll(async () => {
    await client.end();
    await server[Symbol.asyncDispose]();
  });

  test("any commands give equal answers, rows and journals", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(aCommand, { minLength: 10, maxLength: 50 }),
        fc.nat(3),
        async (commands, reports) => {
          const clock = { now: 1_000_000 };
          using file = temporaryLedger();
          makeLedger(file.path);
          await emptyPostgres(client);
          await using sqlite = openSqliteReplicas(file.path, clock);
          await using postgres = await openPostgresReplicas(url, clock, client);
          const world: World = {
            model: new LedgerModel(contractRules),
            stores: [sqlite, postgres],
            callers: [],
            tickets: 0,
            get now() {
              return clock.now;
            },
            set now(value) {
              clock.now = value;
            },
          };
          await prepare(world);
          for (const command of commands) await obey(world, command);
          await compareRows(world);
          expect(auditProblems(file.path)).toEqual([]);
          if (reports === 0) await compareReports(world);
        },
      ),
      { numRuns: 24 },
    );
  });
});

function openSqliteReplicas(path: string, clock: { readonly now: number }): Replicas {
  const open = (): ReturnType<typeof openStore> => openStore({ ...settings, path });
  const stores = [open(), open()];
  return {
    call(replica, name, argument) {
      const call = { name, argument, nowMs: clock.now } as unknown as StoreCall;
      const [answer] = stores[replica]?.execute([call]) ?? [];
      if (answer === undefined) throw new Error("no answer");
      return answer.ok ? Promise.resolve(answer.value) : Promise.reject(answer.error);
    },
    reconnect(replica) {
      stores[replica]?.[Symbol.dispose]();
      stores[replica] = open();
      return Promise.resolve();
    },
    rows(sql) {
      using database = new DatabaseSync(path, { readOnly: true, readBigInts: true });
      database.prepare("attach ? as rate").run(`${path}-rate`);
      const rows = database.prepare(sql.replaceAll("RATE.", "rate.")).all();
      return Promise.resolve(rows.map((row) => Object.values(row).map(asText)));
    },
    [Symbol.asyncDispose]() {
      for (const store of stores) store[Symbol.dispose]();
      return Promise.resolve();
    },
  };
}

async function openPostgresReplicas(
  url: string,
  clock: { readonly now: number },
  client: Client,
): Promise<Replicas> {
  const open = (): Promise<StoreClient> =>
    connectPostgresStore({ ...settings, url, connections: 1 }, { now: () => clock.now });
  const stores = [await open(), await open()];
  return {
    call: (replica, name, argument) =>
      stores[replica]?.call(name, argument) ?? Promise.reject(new Error("no store")),
    async reconnect(replica) {
      await stores[replica]?.[Symbol.asyncDispose]();
      stores[replica] = await open();
    },
    async rows(sql) {
      const result = await client.query<unknown[]>({
        text: sql.replaceAll("RATE.ticket", "rate_ticket"),
        rowMode: "array",
      });
      return result.rows.map((row) => row.map(asText));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
    },
  };
}

/** As a superuser may, past the journal's triggers. Deleting a few rows is far quicker than truncating. */
async function emptyPostgres(client: Client): Promise<void> {
  const tables = [
    "rate_ticket",
    "rate_window",
    "checkpoint",
    "usage_progress",
    "usage_quarter",
    "usage_day",
    "usage_label",
    "usage_week",
    "usage_all",
    "archive",
    "archive_file",
    "kept_credit",
    "entry",
    "reservation",
    "api_key",
    "account",
  ];
  const deletions = tables.map((name) => `delete from ${name};`).join(" ");
  await client.query(
    `set session_replication_role = replica; ${deletions} reset session_replication_role`,
  );
}

function asText(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (typeof value === "boolean") return value ? "1" : "0";
  return String(value);
}

async function prepare(world: World): Promise<void> {
  const { model } = world;
  for (const id of accountIds) {
    model.accounts.set(id, { active: true, balance: 0n, held: 0n, credited: 0n, spent: 0n });
    model.credit(id, 5_000_000n, "credit");
    await both(world, 0, "createAccount", { id, name: id, creditNanos: 5_000_000n });
  }
  for (const id of keyIds) {
    const accountId = accountOfName(id);
    model.keys.set(id, { account: accountId, revoked: false, tickets: [] });
    await both(world, 0, "createKey", { id, accountId, name: id, secretHash: secretHash(id) });
  }
}

/** The answer of both stores, which is the same: its value, or what it was refused with. */
async function both<Name extends OperationName>(
  world: World,
  replica: 0 | 1,
  name: Name,
  argument: ArgumentOf<Name>,
): Promise<{ readonly code: string; readonly value: unknown }> {
  const [one, other] = await Promise.all(
    world.stores.map((store) =>
      store.call(replica, name, argument).then((value) => ({ code: "done", value }), refusalOf),
    ),
  );
  if (one === undefined || other === undefined) throw new Error("there are two stores");
  expect(other).toEqual(one);
  return one;
}

function refusalOf(error: unknown): { readonly code: string; readonly value: unknown } {
  if (error instanceof Failure) {
    const { cause: _cause, ...facts } = error.facts;
    return { code: error.code, value: { message: error.message, facts } };
  }
  if (error instanceof OperatorError) return { code: error.code, value: error.message };
  throw error;
}

// oxlint-disable-next-line max-lines-per-function -- one case a command, each a line or a few
async function obey(world: World, command: Command): Promise<void> {
  const { model, now } = world;
  const { replica } = command;
  switch (command.type) {
    case "wait":
      world.now += command.ms;
      return;
    case "reconnect":
      for (const store of world.stores) await store.reconnect(replica);
      return;
    case "credit": {
      const { account: id, amount: amountNanos } = command;
      const { code, value } = await both(world, replica, "creditAccount", {
        id,
        amountNanos,
        note: amountNanos % 2n === 0n ? "a note\nof two lines" : null,
      });
      // More than an account may hold is the operator's mistake, which the model does not know.
      if (code === "invalid_value") return;
      const { account } = (value ?? {}) as { account: { balanceNanos: bigint; heldNanos: bigint } };
      const seen = code === "done" ? [account.balanceNanos, account.heldNanos] : code;
      expect(seen).toEqual(model.credit(id, amountNanos));
      return;
    }
    case "budget": {
      const { amount: amountNanos, days, key: id } = command;
      const period = days ? "day" : "total";
      const budget = amountNanos === null ? null : ({ amountNanos, period } as const);
      const { code } = await both(world, replica, "changeKey", { id, budget });
      if (code === "done" && !isSame(model.key(id).budget, amountNanos, days))
        model.setBudget(id, amountNanos, days, now);
      return;
    }
    case "grant": {
      const { account: id, amount: amountNanos, carry: carryOver } = command;
      const grant =
        amountNanos === null ? null : ({ amountNanos, every: "day", carryOver } as const);
      await both(world, replica, "changeAccount", { id, grant });
      const before = model.account(id).grant ?? null;
      if (
        before?.amount !== (amountNanos ?? undefined) ||
        (before?.carry ?? false) !== (amountNanos !== null && carryOver)
      )
        model.setGrant(id, amountNanos, carryOver, now);
      return;
    }
    case "pay":
      await both(world, replica, "payGrants", { accountId: null });
      for (const id of accountIds) model.payGrant(id, now);
      return;
    case "status": {
      const status = command.active ? "active" : "disabled";
      await both(world, replica, "setAccountStatus", { id: command.account, status });
      model.account(command.account).active = command.active;
      return;
    }
    case "revoke": {
      // One account keeps its key, so that there is something to do.
      const { code } = await both(world, replica, "revokeKey", { id: command.key });
      if (code === "done") model.key(command.key).revoked = true;
      return;
    }
    case "look":
      if (command.at === "listAccounts") await both(world, replica, command.at, null);
      else await both(world, replica, command.at, command.account);
      return;
    case "authorize":
      return authorize(world, command);
    case "give-back": {
      const given = callerOf(world, command.caller);
      if (given === undefined) return;
      await both(world, replica, "giveTicketBack", given.caller);
      model.giveTicketBack(given.model);
      return;
    }
    case "admit":
      return admit(world, command);
    case "settle":
      return settle(world, command);
    case "renew": {
      const { value } = await both(world, replica, "renew", command.requests);
      expect(value).toEqual(model.renew(command.requests, now));
      return;
    }
    case "expire": {
      const { value } = await both(world, replica, "expire", null);
      expect(["expired", value]).toEqual(model.expire(now));
      return;
    }
    default:
      command satisfies never;
  }
}

/** A change to what is there already changes nothing. */
function isSame(
  budget: ModelBudget | null | undefined,
  amount: bigint | null,
  days: boolean,
): boolean {
  if (amount === null || budget === null || budget === undefined)
    return amount === (budget?.amount ?? null);
  return budget.amount === amount && budget.days === days;
}

async function authorize(
  world: World,
  command: Extract<Command, { readonly type: "authorize" }>,
): Promise<void> {
  world.tickets += 1;
  const { code, value } = await both(world, command.replica, "authorize", {
    accountId: accountOfName(command.key),
    keyId: command.key,
    secretHash: secretHash(command.right ? command.key : "wrong"),
    ticketId: command.counts ? String(world.tickets) : null,
    needsCredit: command.paid,
  });
  const [answer, modelCaller] = world.model.authorize(command, world.now);
  const caller = value as Caller;
  expect(code === "done" ? ["authorized", caller.rate.remaining] : code).toEqual(answer);
  if (modelCaller !== null) world.callers.push({ caller, model: modelCaller });
}

/** Also one that was used before: requests are repeated, and callers come late. */
function callerOf(world: World, fromLast: number): World["callers"][number] | undefined {
  return world.callers[world.callers.length - 1 - (fromLast % Math.max(world.callers.length, 1))];
}

async function admit(
  world: World,
  command: Extract<Command, { readonly type: "admit" }>,
): Promise<void> {
  const { asked, bound } = command;
  const caller = callerOf(world, command.caller);
  if (caller === undefined) return;
  const requestId =
    `req_${caller.caller.accountId.slice("acct_".length)}${String(command.request)}` as const;
  const { code, value } = await both(world, command.replica, "admit", {
    requestId,
    caller: caller.caller,
    inputBound: bound,
    outputTokensRequested: asked,
    outputTokensFitting: null,
    format: "messages",
    streamed: bound % 2 === 0,
    label: bound % 3 === 0 ? null : `user ${String(bound)}`,
  });
  const admission = value as { readonly allowance: number; readonly reservedNanos: bigint };
  const seen: ModelAnswer =
    code === "done" ? ["admitted", admission.allowance, admission.reservedNanos] : code;
  expect(seen).toEqual(world.model.admit(requestId, caller.model, bound, asked, world.now));
}

async function settle(
  world: World,
  command: Extract<Command, { readonly type: "settle" }>,
): Promise<void> {
  const { request: requestId, usage } = command;
  const { value } = await both(world, command.replica, "settle", {
    requestId,
    accountId: accountOfName(requestId),
    outcome: usage === null ? "failed" : "completed",
    usage:
      usage === null
        ? null
        : {
            inputTokens: usage[0],
            cachedInputTokens: 1,
            outputTokens: usage[1],
            reasoningTokens: 2,
          },
    firstOutputMs: usage === null ? null : 3,
    totalMs: 9,
  });
  const settled = value as { readonly chargedNanos: bigint; readonly applied: boolean };
  expect(["settled", settled.chargedNanos, settled.applied]).toEqual(
    world.model.settle(requestId, usage),
  );
}

/** What callers and operators read is the same too, before and after old entries are rolled up. */
async function compareReports(world: World): Promise<void> {
  const order = { against: [], listHeads: true };
  expect((await both(world, 0, "verify", order)).value).toMatchObject({ ok: true, problems: [] });
  for (const accountId of accountIds) {
    const keyId = accountId === "acct_a" ? "key_a1" : "key_b1";
    await both(world, 0, "callerAccount", { accountId, keyId });
    for (const n of [0, 1, 2, 3, 4, 5]) {
      const requestId = `req_${accountId.slice("acct_".length)}${String(n)}`;
      await both(world, 1, "receipt", { requestId, accountId: n % 2 === 0 ? "acct_a" : null });
    }
  }
  for (let kept = 0; kept < 2; kept += 1) {
    for (const by of ["hour", "day", "key", "format", "label"] as const) {
      const query = { keyId: null, format: null, timezone: "UTC", by: [by] };
      const span = { sinceMs: 1_030_000, untilMs: world.now };
      const all = { ...query, accountId: null, sinceMs: null, untilMs: null };
      await both(world, 0, "pageUsage", all);
      await both(world, 1, "pageUsage", { ...query, accountId: "acct_a", ...span });
    }
    const { accountIds: unsummed } = (await both(world, 0, "findUnsummed", "")).value as {
      readonly accountIds: readonly string[];
    };
    await both(world, 1, "keepUsage", { accountIds: unsummed });
  }
  expect((await both(world, 0, "verify", order)).value).toMatchObject({ ok: true, problems: [] });
  for (const accountId of accountIds)
    await both(world, 0, "checkpoint", { accountId, beforeMs: world.now - 20_000 });
  for (const accountId of accountIds) {
    const order = { accountId, beforeMs: world.now };
    const { lines, ...batch } = (await both(world, 1, "readArchivable", order))
      .value as ArchiveBatch;
    const file = { name: "receipts.jsonl", after: batch.after, from: batch.from };
    const done = (await both(world, 0, "archiveReceipts", { ...order, batch, file })).value;
    expect(done).toEqual(lines.length === 0 ? null : { removed: lines.length });
  }
  expect((await both(world, 1, "verify", order)).value).toMatchObject({ ok: true, problems: [] });
  const [one, other] = world.stores;
  for (const sql of [
    accountRows,
    ...otherRows,
    "select account_id, sequence, hash, balance_nanos, held_nanos, credited_nanos, at_ms from checkpoint order by account_id",
  ])
    expect(await other?.rows(sql)).toEqual(await one?.rows(sql));
}

const accountRows =
  "select id, status, balance_nanos, held_nanos, running, entries, head, created_at_ms, grant_nanos, grant_carry_over, grant_next_ms, grant_left_nanos from account order by id";
const otherRows = [
  "select account_id, id, name, secret_hash, created_at_ms, revoked_at_ms, " +
    "budget_nanos, budget_period, budget_timezone, budget_begin_ms, budget_end_ms, budget_spent_nanos, " +
    "budget_held_nanos, budget_set_sequence from api_key order by id",
  `select request_id, account_id, key_id, state, format, streamed, label, input_bound, allowance, input_nanos_per_million,
     output_nanos_per_million, reserved_nanos, charged_nanos, outcome, input_tokens, cached_input_tokens,
     output_tokens, reasoning_tokens, admitted_at_ms, lease_until_ms, resolved_at_ms, first_output_ms, total_ms,
     reserved_sequence, resolved_sequence, head, budget_begin_ms from reservation order by request_id`,
  `select account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor, request_id, note, hash
     from entry order by account_id, sequence`,
];

async function compareRows(world: World): Promise<void> {
  const { model, now, stores } = world;
  const windows = `select key_id, at_ms, id from RATE.ticket where at_ms > ${String(now - 60_000)} order by key_id, at_ms, id`;
  const [one, other] = stores;
  if (one === undefined || other === undefined) throw new Error("there are two stores");
  for (const sql of [accountRows, ...otherRows, windows])
    expect(await other.rows(sql)).toEqual(await one.rows(sql));
  expect((await one.rows(accountRows)).map((row) => row.slice(0, 5))).toEqual(
    [...model.accounts].map(([id, account]) =>
      [
        id,
        account.active ? "active" : "disabled",
        account.balance,
        account.held,
        model.running(id),
      ].map(String),
    ),
  );
  expect(await one.rows("select id, grant_left_nanos from account order by id")).toEqual(
    accountIds.map((id) => [id, String(model.account(id).left ?? 0n)]),
  );
  expect(
    await one.rows(
      "select id, budget_spent_nanos, budget_held_nanos from api_key where budget_nanos is not null order by id",
    ),
  ).toEqual(
    keyIds
      .filter((id) => (model.key(id).budget ?? null) !== null)
      .map((id) => [id, ...model.used(id)].map(String)),
  );
  const journal = await one.rows(
    "select account_id, kind, balance_delta_nanos, held_delta_nanos, request_id from entry order by account_id, sequence",
  );
  expect(journal).toEqual(
    accountIds.flatMap((id) =>
      model.journal
        .filter(({ account }) => account === id)
        .map(({ account, balanceDelta, heldDelta, kind, request }) =>
          [account, kind, balanceDelta, heldDelta, request].map(String),
        ),
    ),
  );
}
