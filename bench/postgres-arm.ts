import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findPostgres, startPostgres } from "../tests/ledger/postgres-server.ts";
import { type Arm, openTributary } from "./arms.ts";
import { pinToOtherCore } from "./children.ts";
import { processTree } from "./process-usage.ts";

/** Tributary with its ledger on a server of its own, which syncs to disk and has the core of the load. */
export async function openOnPostgres(
  origin: string,
  folder: string,
  settings: { readonly name: string; readonly checkout: string | null },
): Promise<Arm> {
  if (findPostgres() === null) throw new Error("PostgreSQL is not installed here");
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await startPostgres({ fsync: true }));
  const [line] = readFileSync(join(dirname(server.socket), "data/postmaster.pid"), "utf8").split(
    "\n",
  );
  const processId = Number(line);
  pinToOtherCore(processId);
  const arm = opened.use(
    await openTributary(origin, folder, {
      ...settings,
      synchronous: "full",
      environment: {
        TRIBUTARY_DATABASE_URL: await server.createDatabase("bench"),
        TRIBUTARY_FIRST_ACCOUNT: "make",
      },
    }),
  );
  const all = opened.move();
  return {
    ...arm,
    databaseIds: () => processTree(processId),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
