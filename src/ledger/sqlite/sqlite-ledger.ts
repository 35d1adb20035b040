import { randomBytes } from "node:crypto";
import type { AdmitOrder, GivenBack } from "../ledger.ts";
import type { StoreClient } from "../store-operations.ts";
import { openOnce } from "../../open-once.ts";
import { openStoreLedger, type StoreLedger, type StoreLedgerParts } from "../store-ledger.ts";
import { memoryPath, prepareFolder, unusable } from "./ledger-files.ts";
import { openPresence, type Presence, removeLeftOvers } from "./presence.ts";
import { openChannelLine, type WriterChannel } from "./channel-line.ts";
import type { StoreSettings } from "./store.ts";
import { openThreadLine } from "./thread-line.ts";
import { connectStore, type StoreClientParts } from "./worker-client.ts";

/** Where the ledger is and what it decides by. */
export type SqliteLedgerSettings = StoreSettings;

/** What the ledger works with. */
export interface SqliteLedgerParts extends StoreLedgerParts, StoreClientParts {
  /** This process serves: it says that it lives, so that what it holds is given back as soon as it does not. */
  readonly serves?: true;
  /** The process that has the file open for this one; absent: this one opens it. */
  readonly writer?: { readonly channel: WriterChannel; readonly family: string };
}

/** The one store of a service of several processes. */
export interface SqliteWriter extends AsyncDisposable {
  /** What the names begin with by which the processes of this service say that they live. */
  readonly family: string;
  readonly client: StoreClient;
}

/** Both halves of the ledger on one SQLite file. */
export type SqliteLedger = StoreLedger;

/** Opens the ledger: its thread, its file, its schema. Rejects with an OperatorError when the file cannot be used. */
export async function openSqliteLedger(
  settings: SqliteLedgerSettings,
  parts: SqliteLedgerParts,
): Promise<SqliteLedger> {
  if (parts.serves !== true) {
    const client = await connectStore(openThreadLine(settings), parts);
    return openLedgerOver(withReports(client, settings, parts), parts);
  }
  if (parts.writer !== undefined) return openBesideWriter(settings.path, parts, parts.writer);
  const { client } = await openSqliteWriter(settings, parts);
  return openLedgerOver(client, parts);
}

/** Usage is read by a thread of its own, which opens the file with the first question and whose priority is lower. */
function withReports(
  client: StoreClient,
  settings: SqliteLedgerSettings,
  { now }: SqliteLedgerParts,
): StoreClient {
  if (settings.yields === true || settings.path === memoryPath) return client;
  const reports = openOnce(() =>
    connectStore(openThreadLine({ ...settings, yields: true }), { now }),
  );
  return {
    async call(name, argument) {
      return (name === "printUsage" ? await reports.open() : client).call(name, argument);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([client[Symbol.asyncDispose](), reports[Symbol.asyncDispose]()]);
    },
  };
}

function openLedgerOver(client: StoreClient, parts: SqliteLedgerParts): SqliteLedger {
  return openStoreLedger(client, { ...parts, wallMs: parts.now });
}

/** Opens the file for this process and for others that are given its family. */
export async function openSqliteWriter(
  settings: SqliteLedgerSettings,
  parts: StoreClientParts,
): Promise<SqliteWriter> {
  const owner = randomBytes(8).toString("hex");
  const { path } = settings;
  // Before the file is opened: a `ledger move` either sees this process, or has marked the file, which is then refused.
  using opening = new DisposableStack();
  const presence = opening.use(beginPresence(path, owner));
  const client = await connectStore(openThreadLine({ ...settings, owner }), parts);
  opening.move();
  removeLeftOvers(path, parts.now());
  const present = withPresence(client, presence);
  return {
    family: owner,
    client: present,
    [Symbol.asyncDispose]: () => present[Symbol.asyncDispose](),
  };
}

/** A process that another one writes for has leases of its own, and says itself that it lives. */
async function openBesideWriter(
  path: string,
  parts: SqliteLedgerParts,
  { channel, family }: NonNullable<SqliteLedgerParts["writer"]>,
): Promise<SqliteLedger> {
  const owner = `${family}-${randomBytes(4).toString("hex")}`;
  using opening = new DisposableStack();
  const presence = opening.use(beginPresence(path, owner));
  const client = withPresence(await connectStore(openChannelLine(channel), parts), presence);
  opening.move();
  return openLedgerOver(withOwner(client, owner), parts);
}

function withOwner(client: StoreClient, owner: string): StoreClient {
  return {
    call(name, argument) {
      if (name !== "admit") return client.call(name, argument);
      // Only `admit` gets here, whose argument is an order.
      return client.call(name, { ...(argument as AdmitOrder), owner });
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}

function beginPresence(path: string, owner: string): Presence {
  prepareFolder(path);
  try {
    return openPresence(path, owner);
  } catch (error) {
    throw unusable(path, error);
  }
}

/** Takes the lock of this process again, where its file was removed, before each `giveBackDead`; lets go of it last. */
function withPresence(client: StoreClient, presence: Presence): StoreClient {
  return {
    call(name, argument) {
      const known = name !== "giveBackDead" || presence.ensure();
      const answer = client.call(name, argument);
      if (known) return answer;
      // Only `giveBackDead` gets here, whose answer is a GivenBack.
      return answer.then((given) => ({ ...(given as GivenBack), known }) as typeof given);
    },
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      presence[Symbol.dispose]();
    },
  };
}
