import { openAdministration } from "./administration.ts";
import { openAdmit, type AdmitRules } from "./admit.ts";
import { openAuthorize } from "./authorize.ts";
import { retryUntilServerIsUp, type StartWait } from "./await-server.ts";
import { openBooks } from "./reports.ts";
import { type Clock, type Database, type DatabaseSettings, openDatabase } from "./database.ts";
import { migrate, type MigrationReport } from "./migrate.ts";
import type {
  AnswerOf,
  ArgumentOf,
  OperationName,
  PostgresOperations,
  StoreClient,
  StoreGroup,
} from "../store-operations.ts";
import { limits } from "../../limits.ts";
import { findPooling } from "./pooler.ts";
import { openPresence, type PostgresPresence } from "./presence.ts";
import { openResolve } from "./resolve.ts";
import { openThreadedReports } from "./threaded-reports.ts";
import { openVerify } from "./verify.ts";
import type { AccountId } from "../scalars.ts";
import { OperatorError } from "../operator-error.ts";
import { StoreFault } from "../store-fault.ts";

/** Where the store is and what it decides by. */
export interface PostgresStoreSettings extends DatabaseSettings, AdmitRules {
  readonly requestsPerMinute: number;
}

/** What the store works with. */
export interface PostgresStoreParts {
  /** For a simulation; absent: the server's clock, the same for all replicas. */
  readonly now?: () => number;
  readonly onMigrated?: (report: MigrationReport) => void;
  /** This process serves: it says that it lives, so that what it holds is given back as soon as it does not. */
  readonly serves?: true;
  /** Called where a pooler in transaction mode is in front of the server. */
  readonly onPooled?: () => void;
  readonly onGroup?: (group: StoreGroup) => void;
  /** False: where there is no ledger none is made. */
  readonly creates?: boolean;
  /** Absent: a server that is not up yet fails the start at once, as commands want it. */
  readonly startWait?: StartWait;
}

/** Connects and migrates. Rejects with an OperatorError when the database cannot be used. */
export async function connectPostgresStore(
  settings: PostgresStoreSettings,
  parts: PostgresStoreParts,
): Promise<StoreClient> {
  const name = databaseName(settings.url);
  const clock: Clock = () => parts.now?.() ?? null;
  await using opened = new AsyncDisposableStack();
  let database: Database;
  let presence: PostgresPresence | null = null;
  try {
    const pooling = await whenUp(() => findPooling(settings), parts.startWait);
    if (pooling === "transaction") parts.onPooled?.();
    database = opened.use(openDatabase({ ...settings, pooling }));
    const report = await whenUp(
      () => migrate(database, { name, creates: parts.creates !== false }),
      parts.startWait,
    );
    if (report !== null) parts.onMigrated?.(report);
    // A lock belongs to a session, and a pooler in transaction mode gives none to its clients.
    if (parts.serves === true && pooling !== "transaction")
      presence = opened.use(await openPresence(settings, clock));
  } catch (error) {
    if (!(error instanceof StoreFault)) throw error;
    throw new OperatorError(
      "ledger_unusable",
      `The ledger ${name} cannot be opened: ${error.message}. ${error.remedy ?? "Check that the user may create a schema in that database, or name another one in TRIBUTARY_DATABASE_URL."}`,
      { cause: error },
    );
  }
  const { onGroup } = parts;
  const operations = {
    ...openOperations(database, settings, { clock, onGroup, presence }),
    ...opened.use(openThreadedReports(settings)),
  };
  const owned = opened.move();
  return {
    call: (operation, argument) => apply(operations, operation, argument),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function whenUp<Value>(work: () => Promise<Value>, startWait?: StartWait): Promise<Value> {
  return startWait === undefined ? work() : retryUntilServerIsUp(work, startWait);
}

function openOperations(
  database: Database,
  settings: PostgresStoreSettings,
  {
    clock,
    onGroup,
    presence,
  }: {
    readonly clock: Clock;
    readonly onGroup: PostgresStoreParts["onGroup"];
    readonly presence: PostgresPresence | null;
  },
): PostgresOperations {
  const { busyMs = limits.ledgerBusyMs, leaseMs } = settings;
  const administration = openAdministration(database, clock);
  const payGrant = (accountId: AccountId): Promise<unknown> =>
    administration.payGrants({ accountId });
  return {
    ...openAuthorize(database, { ...settings, busyMs }, clock),
    admit: openAdmit(
      database,
      { ...settings, busyMs, owner: presence?.owner ?? null },
      { clock, onGroup, payGrant },
    ),
    ...openResolve(database, { busyMs, clock, leaseMs, onGroup, presence }),
    ...administration,
    ...openBooks(database, settings, clock),
    verify: openVerify(database),
    async check() {
      await database.query(writeCheck);
      return null;
    },
  };
}

// To lock a row is a write, which a standby and a full disk refuse, and leaves nothing to clean up. Where another replica
// holds the lock, that replica has just shown that the database can be written.
const writeCheck = {
  name: "check",
  text: "select 1 as one from tributary.migration where number = 1 for no key update skip locked",
};

function apply<Name extends OperationName>(
  operations: PostgresOperations,
  name: Name,
  argument: ArgumentOf<Name>,
): Promise<AnswerOf<Name>> {
  // The type of a name ties its argument to its answer; a lookup by name loses that tie.
  const operation = operations[name] as (argument: ArgumentOf<Name>) => Promise<AnswerOf<Name>>;
  return operation(argument);
}

/** Host and database as a message may show them: without user and password. */
function databaseName(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return "in PostgreSQL";
  return `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}
