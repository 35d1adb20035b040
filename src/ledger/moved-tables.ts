import type { Row } from "./row.ts";
import { measures } from "./usage/measures.ts";
import { keyColumnsOf, sumsTables } from "./usage/tables.ts";
import type { VerifyReport } from "./verify-journal.ts";

const measureColumns = measures.map(({ column }) => column).join(" ");

/** A table that moves with a ledger, and its columns; both stores have the same. */
export interface MovedTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** The order in which its rows are read and written. */
  readonly order: string;
}

/**
 * All tables but rate tickets, sessions, which are opened again, and what replicas see of the deployment; and all
 * columns but those of a process that ran a request or delivered: none runs when a ledger moves. A table comes before
 * those whose rows refer to it.
 */
export const movedTables: readonly MovedTable[] = [
  table("price_list", "name", "name version created_at_ms"),
  table(
    "price",
    "list, effective_from_ms",
    `list effective_from_ms input_nanos_per_million cached_input_nanos_per_million output_nanos_per_million`,
  ),
  table(
    "account",
    "id",
    `id name status concurrent_requests requests_per_minute output_tokens_max balance_nanos held_nanos running entries
     head created_at_ms low_balance_nanos balance_low exhausted price_list external_id metadata_json version
     grant_nanos grant_every grant_timezone grant_carry_over grant_next_ms grant_left_nanos`,
  ),
  table(
    "api_key",
    "account_id, id",
    `account_id id name secret_hash scopes status expires_at_ms requests_per_minute output_tokens_max created_at_ms
     revoked_at_ms last_used_at_ms previous_hash previous_until_ms expiring_event_ms budget_event_begin_ms budget_event_percent
     budget_nanos budget_period budget_timezone
     budget_begin_ms budget_end_ms budget_spent_nanos budget_held_nanos budget_set_sequence version`,
  ),
  table(
    "reservation",
    "request_id",
    `account_id request_id key_id state format streamed label input_bound allowance price_list input_nanos_per_million
     cached_input_nanos_per_million output_nanos_per_million reserved_nanos charged_nanos outcome input_tokens cached_input_tokens output_tokens
     reasoning_tokens admitted_at_ms lease_until_ms resolved_at_ms first_output_ms total_ms reserved_sequence
     resolved_sequence head budget_begin_ms refunded_nanos`,
  ),
  table(
    "entry",
    "account_id, sequence",
    `account_id sequence at_ms kind balance_delta_nanos held_delta_nanos actor request_id note hash reference receipt`,
  ),
  table(
    "kept_credit",
    "account_id, sequence",
    `account_id sequence at_ms kind amount_nanos actor note reference receipt balance_nanos held_nanos hash`,
  ),
  table(
    "checkpoint",
    "account_id",
    "account_id sequence hash balance_nanos held_nanos credited_nanos at_ms",
  ),
  table("archive", "account_id", `account_id sequence hash until_ms ${measureColumns}`),
  table(
    "archive_file",
    "account_id, after_sequence",
    "account_id after_sequence from_hash sequence hash receipts file at_ms",
  ),
  table("usage_progress", "account_id", "account_id summed_sequence"),
  ...Object.values(sumsTables).map((sums) =>
    table(
      sums.name,
      keyColumnsOf(sums).join(", "),
      `${keyColumnsOf(sums).join(" ")} ${measureColumns}`,
    ),
  ),
  table("seal_key", "sequence", "id secret created_at_ms"),
  table("operator", "id", "id name role created_at_ms revoked_at_ms"),
  table("operator_token", "id", "id operator_id secret_hash created_at_ms expires_at_ms"),
  table("audit", "sequence", "at_ms actor action target before_json after_json"),
  table(
    "kept_answer",
    "actor, route, idempotency_key",
    "actor route idempotency_key body_hash answer_json created_at_ms",
  ),
  table("outbox", "sequence", "type account_id key_id entry at_ms facts_json"),
  table("event", "position", "position id at_ms type account_id key_id facts_json"),
  table("event_desk", "id", "id positions"),
  table(
    "webhook",
    "id",
    `id url description types_json status secret old_secret old_secret_until_ms failing_since_ms created_at_ms version`,
  ),
  table(
    "delivery",
    "webhook_id, position",
    `webhook_id position event_id account_id state tries next_at_ms tried_at_ms status_code error duration_ms`,
  ),
];

function table(name: string, order: string, columns: string): MovedTable {
  return { name, order, columns: columns.trim().split(/\s+/) };
}

/** The ledger that moves. As long as it is open no process writes to it. */
export interface MoveSource extends Disposable {
  /** How many requests run; a ledger moves without any. */
  readonly open: number;
  /** How many services have it open; a ledger moves without any. */
  readonly processes: number;
  verify(): VerifyReport;
  /** All rows of a table, in pieces; each call begins anew. */
  read(table: MovedTable): Iterable<readonly Row[]>;
  /**
   * Marks the file: from now on only another `ledger move` opens it, also when this process is killed meanwhile, since
   * two ledgers that both go on would spend the same credit twice. The mark is committed when this returns.
   */
  beginMove(): void;
  /** Marks the file as moved: it is a backup for good. */
  finishMove(): void;
  /** Takes the mark away where nothing was moved: the file is the ledger again. */
  giveUpMove(): void;
}

/** How many rows of each table moved. */
export type MovedRows = Readonly<Record<string, number>>;
