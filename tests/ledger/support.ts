import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Failure } from "../../src/failure.ts";
import type { Change } from "../../src/ledger/administration/changed-by.ts";
import type { AccountId, KeyId, RequestId } from "../../src/ledger/scalars.ts";
import type { Caller } from "../../src/ledger/ledger.ts";
import { OperatorError } from "../../src/ledger/operator-error.ts";
import type {
  AnswerOf,
  ArgumentOf,
  OperationName,
  StoreCall,
} from "../../src/ledger/store-operations.ts";
import type { SqliteStore, StoreSettings } from "../../src/ledger/sqlite/store.ts";
import { openVerify } from "../../src/ledger/sqlite/verify.ts";

/** Prices of the contract: 1,000 nanos an input token, 4,000 an output token. */
export const defaultSettings: Omit<StoreSettings, "path"> = {
  synchronous: "normal",
  prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n },
  concurrencyPerAccount: 4,
  requestsPerMinute: 600,
  leaseMs: 60_000,
};

/** A path in a folder of its own, which goes with the value. */
export function temporaryLedger(): Disposable & { readonly path: string; readonly folder: string } {
  const folder = mkdtempSync(join(tmpdir(), "tributary-ledger-"));
  return {
    folder,
    path: join(folder, "ledger.sqlite"),
    [Symbol.dispose]: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** One call in a transaction of its own; throws what it was refused with. */
export function run<Name extends OperationName>(
  store: SqliteStore,
  name: Name,
  argument: ArgumentOf<Name>,
  nowMs = 0,
): AnswerOf<Name> {
  const call = { name, argument, nowMs } as unknown as StoreCall;
  const [answer] = store.execute([call]);
  if (answer === undefined) throw new Error("no answer");
  if (!answer.ok) throw answer.error;
  return answer.value as AnswerOf<Name>;
}

/** The code of a refusal; "fault" for anything that is none. */
export function codeOf(error: unknown): string {
  return error instanceof Failure || error instanceof OperatorError ? error.code : "fault";
}

/** The code that a step is refused with, or "done". */
export function refusal(step: () => unknown): string {
  try {
    step();
    return "done";
  } catch (error) {
    return codeOf(error);
  }
}

/** The Failure that a step throws. */
export function failureOf(step: () => unknown): Failure {
  try {
    step();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

/** A hash that stands for the secret of a key. */
export function secretHash(secret: string): Uint8Array {
  const bytes = new Uint8Array(32);
  bytes.set(new TextEncoder().encode(secret).subarray(0, 32));
  return bytes;
}

/** An account with one key, and how its caller asks. */
export function openTill(
  store: SqliteStore,
  name: string,
  creditNanos: bigint,
  changed: Change<object> = {},
): Till {
  const accountId: AccountId = `acct_${name}`;
  const keyId: KeyId = `key_${name}`;
  run(store, "createAccount", { id: accountId, name, creditNanos, ...changed });
  run(store, "createKey", { id: keyId, accountId, name, secretHash: secretHash(name) });
  let tickets = 0;
  return {
    accountId,
    keyId,
    authorize(nowMs = 0, counts = true) {
      tickets += 1;
      const ticketId = counts ? `t${String(tickets)}` : null;
      return run(
        store,
        "authorize",
        { accountId, keyId, secretHash: secretHash(name), ticketId, needsCredit: false },
        nowMs,
      );
    },
    admit(requestId, order = {}, nowMs = 0) {
      const caller = order.caller ?? this.authorize(nowMs);
      return run(
        store,
        "admit",
        {
          requestId,
          caller,
          inputBound: order.inputBound ?? 1_000,
          outputTokensRequested: order.requested === undefined ? 100 : order.requested,
          outputTokensFitting: order.fitting ?? null,
          format: "messages",
          streamed: true,
          label: null,
        },
        nowMs,
      );
    },
    settle(requestId, usage, nowMs = 0) {
      return run(
        store,
        "settle",
        {
          requestId,
          accountId,
          outcome: usage === null ? "failed" : "completed",
          usage:
            usage === null
              ? null
              : {
                  inputTokens: usage[0],
                  cachedInputTokens: 0,
                  outputTokens: usage[1],
                  reasoningTokens: 0,
                },
          firstOutputMs: null,
          totalMs: 5,
        },
        nowMs,
      );
    },
    show: () => run(store, "showAccount", accountId),
  };
}

export interface Till {
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  authorize(nowMs?: number, counts?: boolean): Caller;
  admit(
    requestId: RequestId,
    order?: {
      readonly inputBound?: number;
      readonly requested?: number | null;
      readonly fitting?: number;
      readonly caller?: Caller;
    },
    nowMs?: number,
  ): AnswerOf<"admit">;
  settle(
    requestId: RequestId,
    usage: readonly [number, number] | null,
    nowMs?: number,
  ): AnswerOf<"settle">;
  show(): AnswerOf<"showAccount">;
}

/** The ledger's rows as another program would see them, and what is wrong with them; [] when all is well. */
export function auditProblems(path: string): readonly string[] {
  using database = new DatabaseSync(path, { readOnly: true, readBigInts: true });
  const check = (problem: string, sql: string): readonly string[] =>
    database
      .prepare(sql)
      .all()
      .map((row) => `${problem}: ${String(Object.values(row)[0])}`);
  const verified = openVerify(database)({ against: [], listHeads: false }, 0);
  return [
    ...verified.problems.map(
      ({ account, code, sequence }) => `verify: ${code} ${account} ${String(sequence)}`,
    ),
    ...check(
      "the journal does not add up to the account",
      `select account.id from account left join entry on entry.account_id = account.id group by account.id
       having coalesce(sum(balance_delta_nanos), 0) <> balance_nanos
         or coalesce(sum(held_delta_nanos), 0) <> held_nanos
         or count(entry.sequence) <> entries or coalesce(max(entry.sequence), 0) <> entries`,
    ),
    ...check(
      "held or running is not what the open reservations say",
      `select account.id from account left join reservation on account_id = account.id and state = 'open'
       group by account.id having coalesce(sum(reserved_nanos), 0) <> held_nanos or count(request_id) <> running`,
    ),
    ...check(
      "more was spent and held than credited",
      `select account.id from account where held_nanos + (select coalesce(sum(charged_nanos), 0) from reservation
         where account_id = account.id) > (select coalesce(sum(balance_delta_nanos), 0) from entry
         where account_id = account.id and request_id is null)`,
    ),
    ...check(
      "a reservation was not made once and resolved at most once",
      `select reservation.request_id from reservation left join entry on entry.request_id = reservation.request_id
       group by reservation.request_id having sum(kind = 'reserve') <> 1
         or sum(kind in ('settle', 'expire')) <> (state <> 'open')
         or sum(held_delta_nanos) <> iif(state = 'open', reserved_nanos, 0)
         or sum(balance_delta_nanos) <> -coalesce(charged_nanos, 0)`,
    ),
    ...check(
      "an entry names a request that has no reservation",
      `select request_id from entry where request_id is not null
         and request_id not in (select request_id from reservation)`,
    ),
  ];
}
