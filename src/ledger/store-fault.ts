/** Whether the same step may succeed later, with nothing changed in the program or in the data. */
export type FaultKind = "busy" | "unavailable" | "bug";

/** What is wrong with the store, and what the operator has to do about it. */
const advice = {
  "disk-full":
    "The ledger's disk is full. Make room on it: until then new requests are refused, and settlements wait.",
  "read-only":
    "The ledger can be read but not written. Let this user write the file, its folder and the files beside it, and mount its disk writable: until then new requests are refused, and settlements wait.",
  corrupt:
    "The ledger's file is damaged. Stop the service, keep the damaged files, put the newest backup in their place as docs/ledger.md says, and look at the disk.",
  "not-a-ledger":
    "The file is no ledger, or it is damaged from its first page on. Name another file in TRIBUTARY_DATABASE_URL, or put the newest backup in its place.",
  locked:
    "Another process keeps the ledger locked. End it, or try again when it has finished: nothing else may hold a transaction open on the ledger.",
  "file-gone":
    "The ledger's file is no longer where it was. Stop the service, put the file or its backup back, and start it again.",
  "file-moved":
    "The ledger was moved to PostgreSQL. Set TRIBUTARY_DATABASE_URL to the database that it was moved to, and start the service again.",
  "disk-fails":
    "The ledger's disk reports an error. Look at the system's log and at the disk, and keep a backup elsewhere.",
  "cannot-open":
    "The ledger's file cannot be opened. Check that its folder exists on a local disk and that this user may read and write both.",
  "out-of-memory":
    "There is no memory left for the ledger. Give the process more, or run less beside it.",
  "thread-ended":
    "The ledger's thread has ended and is started again by itself. Where this repeats, give the process more memory and report what the log says.",
  overloaded:
    "More operations wait for the ledger than it can do. A slow disk or a slow database is the usual reason.",
  closed: "The ledger has been closed, as this process ends.",
  "database-away":
    "The database cannot be reached. Check that its server runs, and that host and port in TRIBUTARY_DATABASE_URL are right and not behind a firewall: until then new requests are refused, and settlements wait.",
  "database-silent":
    "The database does not answer in time. Look at its server and disk, and at the network between.",
  "database-restarting": "The database server is starting or stopping. It is asked again.",
  "database-full":
    "The database server is out of room or memory. Make room on its disk: until then new requests are refused, and settlements wait.",
  "database-read-only":
    "The database may only be read: it is a standby, or set read-only. Name the primary in TRIBUTARY_DATABASE_URL.",
  "database-corrupt":
    "The database server reports damaged data. Stop the service, look at the server's log and its disk, and restore a backup.",
  "database-missing":
    "There is no database of this name. Create it, or name another one in TRIBUTARY_DATABASE_URL.",
  "password-wrong":
    "The database refuses this user or its password. Correct them in TRIBUTARY_DATABASE_URL, with special characters percent-encoded, or leave the password out there and set PGPASSWORD.",
  "not-permitted":
    "The database does not permit this user what the ledger needs. Make it the owner of the database, or of its schema tributary.",
  "too-many-connections":
    "The database takes no more connections. Lower TRIBUTARY_DATABASE_CONNECTIONS, or raise max_connections on the server.",
  "too-long":
    "A statement took longer than it may. Something keeps rows locked (see pg_stat_activity), or the server is too slow.",
  certificate:
    "There is no trusted encrypted connection to the database. Check sslmode and sslrootcert in TRIBUTARY_DATABASE_URL, and whether the server's certificate has expired.",
  pooler:
    "A connection pooler in front of the database refuses what the ledger needs. Name the database server itself in TRIBUTARY_DATABASE_URL, or let the pooler work in session mode.",
} as const;

/** A cause that an operator can do something about. */
export type FaultReason = keyof typeof advice;

/** What is known of a fault besides its kind and its message. */
export interface FaultFacts {
  /** null: a bug, which no operator can mend. */
  readonly reason?: FaultReason | null;
  /** The store's own code, such as `SQLITE_FULL` or an SQLSTATE. */
  readonly code?: string | null;
  readonly cause?: unknown;
}

/**
 * A store could not do an operation: another process holds what it needs, the store cannot be reached or written, or there
 * is a bug. The message of a fault with a reason is the database's own text, which quotes no caller.
 */
export class StoreFault extends Error {
  override readonly name = "StoreFault";
  readonly kind: FaultKind;
  readonly reason: FaultReason | null;
  readonly code: string | null;
  /** What is wrong and what to do, for the log and for commands; null for a bug. */
  readonly remedy: string | null;

  constructor(kind: FaultKind, message: string, facts: FaultFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.kind = kind;
    this.reason = facts.reason ?? null;
    this.code = facts.code ?? null;
    this.remedy = this.reason === null ? null : advice[this.reason];
  }
}
