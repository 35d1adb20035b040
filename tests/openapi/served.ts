import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLivingProgram } from "../cli/start-program.ts";
import { startScriptedDeployment } from "../doubles/scripted-deployment.ts";
import { startPostgres } from "../ledger/postgres-server.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { configOf } from "../service/start-service.ts";

/** A running service with an owner's token. */
export interface Served extends AsyncDisposable {
  readonly store: Store;
  readonly url: string;
  readonly operators: string;
  readonly token: string;
  /** Keys of a new account that can pay: what is tried with an owner's token may revoke any that is there. */
  readonly newKeys: (count: number) => Promise<readonly string[]>;
}

/** Where its ledger is. */
export type Store = "sqlite" | "postgres";

/** Starts the whole service, as a process of its own, over a scripted deployment. */
export async function serve(store: Store, lifeMs: number): Promise<Served> {
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "tributary-openapi-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  const server = store === "postgres" ? opened.use(await startPostgres()) : null;
  const database = await server?.createDatabase("openapi");
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    TRIBUTARY_FIRST_ACCOUNT: "none",
    TRIBUTARY_SQLITE_SYNCHRONOUS: "normal",
    TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "1000",
    TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
    TRIBUTARY_WEBHOOK_PRIVATE: "allow",
    ...(database === undefined ? {} : { TRIBUTARY_DATABASE_URL: database }),
  };
  const words = ["serve", "--json"];
  const program = opened.use(startLivingProgram({ words, folder, environment, lifeMs }));
  const [, url = ""] = await program.waitFor(/"url":"(http:[^"]+)".*"listening"/);
  const [, operators = ""] = await program.waitFor(
    /"address":"(http:[^"]+)","event":"operators listening"/,
  );
  const ledger = opened.use(await openOperatorLedger(configOf(environment)));
  const owner = await ledger.createOperator({ name: "owner", role: "owner", expiresAtMs: null });
  const owned = opened.move();
  return {
    store,
    url,
    operators,
    token: owner.secret,
    newKeys: async (count) => {
      const account = await ledger.createAccount("shop", 10n ** 15n);
      const made: string[] = [];
      while (made.length < count) made.push((await ledger.createKey(account.id, "web")).secret);
      return made;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
