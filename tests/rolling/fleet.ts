import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { costNanos } from "../../src/admission/price.ts";
import {
  delta,
  finish,
  type ScriptedDeployment,
  startScriptedDeployment,
  textAnswer,
} from "../doubles/scripted-deployment.ts";
import { execute, startPostgres } from "../ledger/postgres-server.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { configOf } from "../service/start-service.ts";
import { longWord } from "./load.ts";
import { type Nginx, startNginx } from "./nginx.ts";
import { type Replica, startReplica } from "./replicas.ts";

const usage = { promptTokens: 12, completionTokens: 7 };
const piecesOfLong = 25;

/** What each answer of the fleet's deployment costs. */
export const chargeNanos: bigint = costNanos(
  usage.promptTokens,
  usage.completionTokens,
  configOf({}).prices,
);

/** What each account of a fleet begins with. */
export const startingNanos: bigint = 10n ** 12n;

/** Short answers at once, long ones in 2.5 seconds. */
function answerBoth(deployment: ScriptedDeployment): void {
  const pause = {
    type: "wait",
    get until() {
      return sleep(100);
    },
  } as const;
  const pieces = Array.from({ length: piecesOfLong }, (_, index) => [
    delta({ content: `${String(index)} ` }),
    pause,
  ]);
  const long = [...pieces.flat(), finish("stop", usage)];
  const short = textAnswer("Hello.", { usage });
  deployment.answerBy((asked) => (asked.body.includes(longWord) ? long : short));
}

/** Three replicas on one ledger behind nginx, and what they need. */
export interface Fleet extends AsyncDisposable {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The address of the ledger in PostgreSQL; null: it is SQLite's, in the folder. */
  readonly database: string | null;
  readonly deployment: ScriptedDeployment;
  readonly replicas: Replica[];
  readonly nginx: Nginx;
}

/** What a fleet may differ in. */
export interface FleetOrder {
  readonly name: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Absent: PostgreSQL. */
  readonly store?: "postgres" | "sqlite";
}

/** Starts a fleet. */
export async function startFleet(order: FleetOrder): Promise<Fleet> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-rolling-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  answerBoth(deployment);
  const database =
    order.store === "sqlite"
      ? null
      : await opened.use(await startPostgres()).createDatabase(order.name);
  const environment = {
    TRIBUTARY_DATA_DIR: folder,
    ...(database !== null && { TRIBUTARY_DATABASE_URL: database }),
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    TRIBUTARY_FIRST_ACCOUNT: "none",
    TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
    TRIBUTARY_DRAIN_DELAY_SECONDS: "1",
    TRIBUTARY_DRAIN_LISTENER: "closed",
    ...order.settings,
  };
  const replicas: Replica[] = [];
  opened.defer(async () => {
    for (const { program } of replicas) await program[Symbol.asyncDispose]();
  });
  for (let index = 0; index < 3; index += 1)
    replicas.push(await startReplica({ folder, environment }));
  const nginx = opened.use(await startNginx(replicas.map(({ port }) => port)));
  const owned = opened.move();
  return {
    folder,
    environment,
    database,
    deployment,
    replicas,
    nginx,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Keys of as many accounts. */
export async function makeKeys(
  environment: Readonly<Record<string, string>>,
  count: number,
): Promise<readonly string[]> {
  await using ledger = await openOperatorLedger(configOf(environment));
  const keys: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const account = await ledger.createAccount(`account ${String(index)}`, startingNanos);
    keys.push((await ledger.createKey(account.id, "key")).secret);
  }
  return keys;
}

/** Rows of the ledger's own tables, which an SQL for both stores names by `tributary.`. */
export async function rowsOf(fleet: Fleet, sql: string): Promise<readonly Row[]> {
  if (fleet.database !== null) return execute(fleet.database, sql);
  using database = new DatabaseSync(join(fleet.folder, "ledger.sqlite"), { readOnly: true });
  return database.prepare(sql.replaceAll("tributary.", "")).all();
}

type Row = Readonly<Record<string, unknown>>;
