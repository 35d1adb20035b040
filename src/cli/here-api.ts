import type { OperatorRecord } from "../ledger/administration/operator-administration.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { newId } from "../new-id.ts";
import type { OperatorApiParts } from "../operators/api.ts";
import type { WatchedService } from "../operators/watched-service.ts";
import { quietTimers } from "../timers.ts";
import { CommandError, type Shell } from "./command.ts";
import { thisUser, type UseLedger, withLedger } from "./open-ledger.ts";
import { version } from "./version.ts";

/** Makes one call of the operators' API; `path` is what comes behind `/api/v1`. */
export type Ask = (path: string, init: RequestInit) => Promise<Response>;

/** Lets `use` make calls of the operators' API on the ledger here, as the user who runs the command. */
export function withApiHere<Result>(
  shell: Shell,
  use: (ask: Ask) => Promise<Result>,
  options: { readonly creates?: boolean } = {},
): Promise<Result> {
  const useLedger: UseLedger<Result> = async (ledger, _place, config) => {
    const { openOperatorApi } = await import("../operators/api.ts");
    const failures: unknown[] = [];
    const parts: OperatorApiParts = {
      ledger: () => Promise.resolve(ledger),
      prices: config.prices,
      privateAddresses: config.webhookPrivate,
      publicUrl: null,
      scheme: "http",
      clientOf: () => "",
      tries: { areTooMany: () => false, add: () => {} },
      service: noService,
      newId,
      now: Date.now,
      timers: quietTimers,
      // A ledger alone has no streams of what happens.
      closing: AbortSignal.abort(),
      version,
      onFailure: ({ cause }) => void failures.push(cause),
    };
    const actor = thisUser();
    const own: StoreLedger = {
      ...ledger,
      administer: (by) => ledger.administer({ ...by, actor }),
    };
    const app = openOperatorApi(parts, (context) => {
      context.set("ledger", own);
      context.set("operator", { ...commandUser, name: actor });
      return Promise.resolve();
    });
    return await use(async (path, init) => {
      const answer = await app.fetch(new Request(`http://here/api/v1${path}`, init));
      const [cause] = failures;
      if (cause !== undefined) throw cause;
      return answer;
    });
  };
  return withLedger(shell, useLedger, options);
}

/** Who may write the ledger's files may do everything; `actor` is what the audit log has. */
const commandUser: Omit<OperatorRecord, "name"> = {
  id: "oper_command",
  role: "owner",
  createdAtMs: 0,
  revokedAtMs: null,
};

/** A ledger alone serves nothing. */
const noService: WatchedService = {
  id: "",
  startedAtMs: 0,
  facts: refuse,
  figures: refuse,
  running: refuse,
  refusals: refuse,
  deployment: refuse,
  settings: refuse,
  look: () => {},
  verify: refuse,
};

function refuse(): never {
  throw new CommandError(
    "not_possible",
    1,
    "This is asked of a service that runs: name its listener for operators with --url.",
  );
}
