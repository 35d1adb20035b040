import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseCredit } from "../../src/admission/price.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { type Program, startProgram } from "../cli/start-program.ts";
import {
  type ScriptedDeployment,
  startScriptedDeployment,
} from "../doubles/scripted-deployment.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { configOf } from "../service/start-service.ts";

/** A service of several processes over a scripted deployment, with the operator's view beside it. */
export interface ManyProcesses extends AsyncDisposable {
  readonly program: Program;
  readonly url: string;
  readonly deployment: ScriptedDeployment;
  readonly ledger: StoreLedger;
  /** The lines of the log so far. */
  lines(): readonly LogLine[];
  /** Process ids of those that have begun to serve, by their number. */
  processIds(): ReadonlyMap<number, number>;
  newKey(credit: string): Promise<{ readonly key: string; readonly accountId: string }>;
}

/** One line of the log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly event: string };

/** Starts a service of three processes on a SQLite file of its own. */
export async function startProcesses(
  settings: Readonly<Record<string, string>> = {},
): Promise<ManyProcesses> {
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "tributary-processes-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    TRIBUTARY_SQLITE_SYNCHRONOUS: "normal",
    TRIBUTARY_PROCESSES: "3",
    TRIBUTARY_FIRST_ACCOUNT: "none",
    TRIBUTARY_METRICS: "both",
    ...settings,
  };
  const program = opened.use(startProgram(["serve", "--json"], folder, environment));
  const [, url = ""] = await program.waitFor(/"url":"(http:[^"]+)".*"listening"/);
  const ledger = opened.use(await openOperatorLedger(configOf(environment)));
  const lines = (): readonly LogLine[] =>
    program
      .stdout()
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as LogLine);
  const owned = opened.move();
  return {
    program,
    url,
    deployment,
    ledger,
    lines,
    processIds: () =>
      new Map(
        lines()
          .filter(({ event }) => event === "serving process started")
          .map(({ process, processId }) => [Number(process), Number(processId)]),
      ),
    async newKey(credit) {
      const account = await ledger.createAccount("test", parseCredit(credit) ?? 0n);
      const { secret } = await ledger.createKey(account.id, "test");
      return { key: secret, accountId: account.id };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The sum of a counter over its labels, in the text of /metrics. */
export function countedIn(metrics: string, name: string): number {
  const rows = metrics.split("\n").filter((line) => line.startsWith(`${name}{`));
  return rows.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}
