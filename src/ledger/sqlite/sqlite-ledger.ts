import { randomBytes } from "node:crypto";
import type { GivenBack } from "../ledger.ts";
import type { StoreClient } from "../store-operations.ts";
import { openStoreLedger, type StoreLedger, type StoreLedgerParts } from "../store-ledger.ts";
import { prepareFolder, unusable } from "./database.ts";
import { openPresence, type Presence, removeLeftOvers } from "./presence.ts";
import type { StoreSettings } from "./store.ts";
import { connectStore, openThreadLine, type StoreClientParts } from "./worker-client.ts";

/** Where the ledger is and what it decides by. */
export type SqliteLedgerSettings = StoreSettings;

/** What the ledger works with. */
export interface SqliteLedgerParts extends StoreLedgerParts, StoreClientParts {
  /** This process serves: it says that it lives, so that what it holds is given back as soon as it does not. */
  readonly serves?: true;
}

/** Both halves of the ledger on one SQLite file. */
export type SqliteLedger = StoreLedger;

/** Opens the ledger: its thread, its file, its schema. Rejects with an OperatorError when the file cannot be used. */
export async function openSqliteLedger(
  settings: SqliteLedgerSettings,
  parts: SqliteLedgerParts,
): Promise<SqliteLedger> {
  if (parts.serves !== true)
    return openStoreLedger(await connectStore(openThreadLine(settings), parts), parts);
  const owner = randomBytes(8).toString("hex");
  const { path } = settings;
  // Before the file is opened: a `ledger move` either sees this process, or has marked the file, which is then refused.
  using opening = new DisposableStack();
  const presence = opening.use(beginPresence(path, owner));
  const client = await connectStore(openThreadLine({ ...settings, owner }), parts);
  opening.move();
  removeLeftOvers(path, parts.now());
  return openStoreLedger(withPresence(client, presence), parts);
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
