import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  findPostgres,
  type PostgresServer,
  startPostgres,
} from "../tests/ledger/postgres-server.ts";
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
  const processId = serverIdOf(server);
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

/** The process that has started all others of the server. */
export function serverIdOf({ socket }: Pick<PostgresServer, "socket">): number {
  const [line] = readFileSync(join(dirname(socket), "data/postmaster.pid"), "utf8").split("\n");
  return Number(line);
}
