import { hashApiKey } from "../../src/ledger/api-key.ts";
import { chainHash, checkpointNote } from "../../src/ledger/journal.ts";
import type { AccountId, KeyId } from "../../src/ledger/scalars.ts";
import { type Row, textOf } from "../../src/ledger/row.ts";

// A ledger as it is after a year of requests: receipts by one statement, as a checkpoint leaves them, so that `verify`
// adds them up and needs no entry of each. The same numbers give the same ledger.

/** Runs a statement on tables named `tributary.NAME`, with parameters `$1`, `$2`. */
export type RunStatement = (
  sql: string,
  ...values: readonly (string | number | bigint | Uint8Array | null)[]
) => Promise<readonly Row[]>;

/** What is written. */
export interface ManyReceipts {
  readonly receipts: number;
  readonly accounts: number;
  /** The number of the first account, for a ledger that has others already; absent: 0. */
  readonly firstAccount?: number;
  /** Milliseconds since 1970: the requests are spread evenly over this time. */
  readonly sinceMs: number;
  readonly untilMs: number;
}

const keysOfAccount = ["a", "b", "c"] as const;
const creditedNanos = 10n ** 16n;

/** The account of a number from 0; the first ones have most requests. */
export function writtenAccount(number: number): AccountId {
  return `acct_many${String(10_000 + number)}`;
}

/** One of its three keys, with what a caller presents. */
export function writtenKey(
  account: number,
  key: (typeof keysOfAccount)[number] = "a",
): { readonly id: KeyId; readonly secret: string } {
  const name = `many${String(10_000 + account)}`;
  return { id: `key_${name}${key}`, secret: `trib_${name}_${name}${key}_${"0".repeat(43)}` };
}

/** Writes accounts with three keys each, and their receipts, into a ledger that has none of these accounts. */
export async function writeManyReceipts(run: RunStatement, many: ManyReceipts): Promise<void> {
  const { firstAccount = 0 } = many;
  const numbers = Array.from({ length: many.accounts }, (_, number) => firstAccount + number);
  for (const number of numbers) {
    const id = writtenAccount(number);
    await run(
      `insert into tributary.account (id, name, status, balance_nanos, held_nanos, running, entries, created_at_ms)
       values ($1, $2, 'active', $3, 0, 0, 0, $4)`,
      id,
      `many ${String(number)}`,
      creditedNanos,
      many.sinceMs,
    );
    for (const key of keysOfAccount) {
      const { id: keyId, secret } = writtenKey(number, key);
      await run(
        `insert into tributary.api_key (id, account_id, name, secret_hash, created_at_ms) values ($1, $2, $3, $4, $5)`,
        keyId,
        id,
        key,
        hashApiKey(secret),
        many.sinceMs,
      );
    }
  }
  await run(insertReceipts(many), new Uint8Array(32).fill(7));
  for (const number of numbers) await closeAccount(run, writtenAccount(number), many);
}

/** A number from 0 to 999,999 that looks random, another for each salt. */
function random(salt: number): string {
  return `(((n * 7919 + ${String(salt * 104_729)}) % 1000003 * 48271 + n) % 1000003 % 1000000)`;
}

function insertReceipts(many: ManyReceipts): string {
  const { accounts, firstAccount = 0, receipts, sinceMs, untilMs } = many;
  const spanMs = untilMs - sinceMs;
  const keys = keysOfAccount.map((key, at) => `when ${String(at)} then '${key}'`).join(" ");
  return `insert into tributary.reservation (account_id, request_id, key_id, state, format, streamed, label, input_bound,
      allowance, input_nanos_per_million, output_nanos_per_million, reserved_nanos, charged_nanos, outcome, input_tokens,
      cached_input_tokens, output_tokens, reasoning_tokens, admitted_at_ms, lease_until_ms, resolved_at_ms,
      first_output_ms, total_ms, reserved_sequence, resolved_sequence, head)
    with recursive series(n) as (
      select cast(1 as bigint) union all select n + 1 from series where n < ${String(receipts)}
    ), picked as (
      select n, ${random(1)} * ${random(1)} / 1000000 * ${String(accounts)} / 1000000 as account, ${random(2)} % 3 as key,
        ${random(3)} % 10 as format, ${random(4)} % 12 as label, ${random(5)} % 100 as ending,
        100 + ${random(6)} % 4000 as input, 1 + ${random(7)} % 1500 as output, 30 + ${random(8)} % 3000 as first_ms
      from series
    ), made as (
      select picked.*, 'many' || (${String(10_000 + firstAccount)} + account) as name, ending < 92 as is_completed,
        ending >= 92 and ending < 95 as is_cancelled, ending = 99 as is_lost,
        ${String(sinceMs)} + (n - 1) * ${String(spanMs)} / ${String(receipts)} as at_ms,
        row_number() over (partition by account order by n) as place
      from picked
    ), ended as (
      select made.*, is_completed or is_cancelled as is_charged from made
    )
    select 'acct_' || name, 'req_many' || (${String(100_000_000 + firstAccount * 10_000_000)} + n), 'key_' || name || case key ${keys} end,
      case when is_lost then 'expired' else 'settled' end,
      case when format < 6 then 'chat-completions' when format < 9 then 'messages' else 'responses' end, n % 2 = 0,
      case when label < 10 then 'user ' || label end, input + 64, 4096, 1000000000, 4000000000,
      (input + 64) * 1000 + 4096 * 4000, case when is_charged then input * 1000 + output * 4000 else 0 end,
      case when is_completed then 'completed' when is_cancelled then 'cancelled' when is_lost then 'lease-lost'
        when ending < 97 then 'refused' else 'failed' end,
      case when is_charged then input end, case when is_charged then input / 2 end, case when is_charged then output end,
      case when is_charged then output / 4 end, at_ms, at_ms + 60000,
      at_ms + case when is_lost then 60000 else first_ms + output * 15 end,
      case when is_charged then first_ms end, case when is_lost then null else first_ms + output * 15 end,
      2 * place, 2 * place + 1, $1
    from ended order by n`;
}

/** What the account has after them, and the checkpoint that stands for their entries. */
async function closeAccount(run: RunStatement, id: AccountId, many: ManyReceipts): Promise<void> {
  const [sum] = await run(
    `select cast(count(*) as text) as receipts, cast(coalesce(sum(charged_nanos), 0) as text) as charged
     from tributary.reservation where account_id = $1`,
    id,
  );
  if (sum === undefined) throw new Error("no sum");
  const sequence = 2 * Number(textOf(sum, "receipts")) + 1;
  const balanceNanos = creditedNanos - BigInt(textOf(sum, "charged"));
  const hash = hashApiKey(id);
  const checkpoint = { sequence, hash, balanceNanos, heldNanos: 0n, creditedNanos };
  const entry = {
    accountId: id,
    sequence: sequence + 1,
    atMs: many.untilMs,
    kind: "checkpoint",
    balanceDeltaNanos: 0n,
    heldDeltaNanos: 0n,
    actor: "operator",
    requestId: null,
    note: checkpointNote(checkpoint),
  } as const;
  const head = chainHash(hash, entry);
  await run(
    `insert into tributary.checkpoint (account_id, sequence, hash, balance_nanos, held_nanos, credited_nanos, at_ms)
     values ($1, $2, $3, $4, 0, $5, $6)`,
    id,
    sequence,
    hash,
    balanceNanos,
    creditedNanos,
    many.untilMs,
  );
  await run(
    `insert into tributary.entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor, note, hash)
     values ($1, $2, $3, 'checkpoint', 0, 0, 'operator', $4, $5)`,
    id,
    entry.sequence,
    entry.atMs,
    entry.note,
    head,
  );
  await run(
    "update tributary.account set balance_nanos = $2, entries = $3, head = $4 where id = $1",
    id,
    balanceNanos,
    entry.sequence,
    head,
  );
}
